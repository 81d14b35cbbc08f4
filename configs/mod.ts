export * from "./blocks.ts";
export { type Evaluated, evaluationName, type EvaluationSet, evaluationSets } from "./evaluation_sets.ts";
export { changedAlgorithm } from "./algorithm_file.ts";
export { configJsonSchema, configSchemaText } from "./json_schema.ts";
export { loadConfig, type LoadedConfig, type LoadOptions, type Origin, parseConfig, readConfig } from "./loader.ts";
export { type UsedProfile } from "./profile_settings.ts";
export {
  changeable,
  type ChangedSetting,
  SettingChange,
  settingChanges,
  withoutSettings,
  withSettings,
} from "./changed_settings.ts";
export { SamplerConfig } from "../workers/sampler_config.ts";
export { TrainerConfig } from "../workers/trainer_config.ts";
export { WorkersConfig } from "../workers/workers_config.ts";
export { overridden, parseOverride } from "./overrides.ts";
export { restoreRecorded } from "./recorded.ts";
export { ConfigError, type ConfigProblem, problemLine } from "./problem.ts";
export * from "./schema.ts";
export { namedFiles } from "./files.ts";
export { fieldPaths, type Path, valueAt } from "./schema_walk.ts";
export { holds, type ShippedFile, type ShippedFiles, shippedFiles } from "./shipped_files.ts";
export { didYouMean } from "./suggest.ts";
export type { Position } from "./yaml_file.ts";
