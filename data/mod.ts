export * from "./artifact_ref.ts";
export * from "./batch.ts";
export * from "./chat.ts";
export * from "./codec.ts";
export * from "./content_id.ts";
export * from "./curriculum.ts";
export * from "./digits_preferences.ts";
export * from "./digits_task.ts";
export * from "./errors.ts";
export * from "./expression.ts";
export { leftOut, recorded } from "./left_out.ts";
export { hubName, hubNameText } from "./hub_name.ts";
export { firstColumns } from "./first_columns.ts";
export { digestFile } from "./json_lines.ts";
export { pickSources, Weight, weightAt } from "./mixture.ts";
export { normalise } from "./normalise.ts";
export { drawMixed, drawRows, type Picks, placeOfDraw } from "./order.ts";
export * from "./policy.ts";
export { isPreference, pairOf, PreferencePair } from "./preference.ts";
export * from "./prompt.ts";
export * from "./python_algorithm.ts";
export * from "./ratio_bounds.ts";
export { type InFork, inside, saidOf, setting, type SettingFacts } from "./setting.ts";
export {
  firstRows,
  rowChunks,
  type RowTable,
  sourceSizes,
  tableOf,
  withoutRows,
} from "./row_table.ts";
export { removeFile } from "./row_cache.ts";
export { ROW_SHAPES, shapeOf } from "./row_shapes.ts";
export { isFromSources } from "./row_source.ts";
export * from "./source_config.ts";
export * from "./reward_style.ts";
export * from "./running_scores.ts";
export { isPattern, sourceFiles } from "./source_files.ts";
export type { RowNeeds } from "./source_row.ts";
export { type LoadedRows, loadRows, type ReadOptions, type SourceSummary } from "./sources.ts";
export * from "./trajectory.ts";
export { writeAll } from "./write_all.ts";
