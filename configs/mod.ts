export * from "./blocks.ts";
export {
  byEvaluationName,
  type Evaluated,
  evaluationName,
  evaluationPasses,
  type EvaluationSet,
  evaluationSets,
  metricsPrefix,
} from "./evaluation_sets.ts";
export { parseStartFrom, type StartFrom } from "./start_from.ts";
export { StopConfig } from "./evaluation_set_config.ts";
export { algorithmBlock, changedAlgorithm } from "./algorithm_file.ts";
export { configJsonSchema, configSchemaText } from "./json_schema.ts";
export {
  loadConfig,
  type LoadedConfig,
  type LoadOptions,
  type Origin,
  parseConfig,
  readConfig,
} from "./loader.ts";
export { type UsedProfile } from "./settings/profile_settings.ts";
export {
  changeable,
  SettingChange,
  settingChanges,
  withoutSettings,
  withSettings,
} from "./settings/changed_settings.ts";
export { metricName } from "./rules/metric_rules.ts";
export { Mixture, mixtureOf } from "./mixture.ts";
export { overridden, parseOverride, setAt } from "./settings/overrides.ts";
export { parseRewards } from "./parse_rewards.ts";
export { Decontamination, LengthLimits, PreparedNeeds } from "./prepare_config.ts";
export { ConfigError, type ConfigProblem } from "./problems/problem.ts";
export * from "./schema.ts";
export { namedFiles } from "./files.ts";
export { fieldPaths, valueAt } from "./settings/schema_walk.ts";
export { type Setting, settingsOf } from "./settings/settings_of.ts";
export { SETTINGS_PAGE_URL, settingsPage } from "./settings/settings_page.ts";
export { holds, type ShippedFile, type ShippedFiles, shippedFiles } from "./shipped_files.ts";
export { didYouMean } from "./problems/suggest.ts";
export type { Position } from "./yaml_file.ts";
export { type MetricStyle, TrackConfig, TrackerConfig } from "./track_config.ts";
