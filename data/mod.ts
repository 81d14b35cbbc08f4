export * from "./artifact_ref.ts";
export * from "./batch.ts";
export * from "./chat.ts";
export * from "./codec.ts";
export {
  clashText,
  ColumnType,
  type ColumnTypes,
  TypeClash,
  typeOf,
  unified,
} from "./preparation/column_type.ts";
export * from "./content_id.ts";
export * from "./sources/curriculum.ts";
export * from "./sources/digits_preferences.ts";
export * from "./sources/digits_task.ts";
export * from "./errors.ts";
export * from "./expression.ts";
export { type FileRow, fileRows } from "./sources/file_rows.ts";
export { HASH_BYTES, hashOf, HashSet } from "./rows/hash_set.ts";
export {
  type DatasetPart,
  hubDataset,
  hubDatasetText,
  hubHint,
  isHubDataset,
} from "./hub_dataset.ts";
export { hostPath, hubFileName } from "./sources/hub_files.ts";
export { sourceLabel } from "./sources/source_label.ts";
export { hubName, hubNameText } from "./hub_name.ts";
export { firstColumns } from "./sources/first_columns.ts";
export { digestFile } from "./sources/json_lines.ts";
export {
  type MappedRow,
  type RowMapper,
  rowMapper,
  textOf,
  textsOf,
} from "./preparation/map_row.ts";
export { pickSources, Weight, weightAt } from "./sources/mixture.ts";
export { NgramIndex, type NgramRecord } from "./preparation/ngrams.ts";
export { normalise, rowAnswer } from "./rows/normalise.ts";
export { drawMixed, drawRows, type Picks, placeOfDraw } from "./sources/order.ts";
export { type NamedColumn, ParquetRows } from "./preparation/parquet_rows.ts";
export * from "./policy.ts";
export { isPreference, pairOf, PreferencePair } from "./preference.ts";
export * from "./preparation/prepared_row.ts";
export * from "./preparation/prepared_source.ts";
export * from "./prompt.ts";
export * from "./python_algorithm.ts";
export * from "./ratio_bounds.ts";
export { declaredFacts, type InFork, inside, setting, type SettingFacts } from "./setting.ts";
export {
  firstRows,
  rowChunks,
  type RowTable,
  sourceSizes,
  tableOf,
  withoutRows,
} from "./rows/row_table.ts";
export { removeFile } from "./rows/row_cache.ts";
export { kind } from "./rows/row_fields.ts";
export { ROW_SHAPES, shapeOf } from "./rows/row_shapes.ts";
export { isFromSources } from "./rows/row_source.ts";
export * from "./source_config.ts";
export * from "./reward_style.ts";
export * from "./running_scores.ts";
export { isPattern, type SourceFile, sourceFiles } from "./sources/source_files.ts";
export type { RowNeeds } from "./rows/source_row.ts";
export {
  type LoadedRows,
  loadRows,
  type ReadOptions,
  type SourceSummary,
} from "./sources/sources.ts";
export { labelledCompletions, mismatchedOf, UnpairedCompletion } from "./unpaired.ts";
export { needsTemplate, wholeMessage } from "./rows/tools.ts";
export * from "./trajectory.ts";
export { brokenText, utf8Text } from "./utf8_text.ts";
export { writeAll } from "./rows/write_all.ts";
