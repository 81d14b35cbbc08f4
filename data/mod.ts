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
} from "./column_type.ts";
export * from "./content_id.ts";
export * from "./curriculum.ts";
export * from "./digits_preferences.ts";
export * from "./digits_task.ts";
export * from "./errors.ts";
export * from "./expression.ts";
export { type FileRow, fileRows } from "./file_rows.ts";
export { HASH_BYTES, hashOf, HashSet } from "./hash_set.ts";
export { hubName, hubNameText } from "./hub_name.ts";
export { firstColumns } from "./first_columns.ts";
export { digestFile } from "./json_lines.ts";
export { type MappedRow, type RowMapper, rowMapper, textOf, textsOf } from "./map_row.ts";
export { pickSources, Weight, weightAt } from "./mixture.ts";
export { NgramIndex, type NgramRecord } from "./ngrams.ts";
export { givenAnswer, normalise } from "./normalise.ts";
export { drawMixed, drawRows, type Picks, placeOfDraw } from "./order.ts";
export { type NamedColumn, ParquetRows } from "./parquet_rows.ts";
export * from "./policy.ts";
export { isPreference, pairOf, PreferencePair } from "./preference.ts";
export * from "./prepared_row.ts";
export * from "./prepared_source.ts";
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
export { kind } from "./row_fields.ts";
export { ROW_SHAPES, shapeOf } from "./row_shapes.ts";
export { isFromSources } from "./row_source.ts";
export * from "./source_config.ts";
export * from "./reward_style.ts";
export * from "./running_scores.ts";
export { isPattern, type SourceFile, sourceFiles } from "./source_files.ts";
export type { RowNeeds } from "./source_row.ts";
export { type LoadedRows, loadRows, type ReadOptions, type SourceSummary } from "./sources.ts";
export { needsTemplate, wholeMessage } from "./tools.ts";
export * from "./trajectory.ts";
export { writeAll } from "./write_all.ts";
