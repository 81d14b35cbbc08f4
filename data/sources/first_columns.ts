import { fileRows } from "./file_rows.ts";
import type { Columns } from "../rows/row_fields.ts";
import { SourceConfig, type SourceInput } from "../source_config.ts";
import { sourceFiles } from "./source_files.ts";

/**
 * The columns of a source's first row, read without opening the rest of it; null: it has no row.
 * @throws {DataError} If the source or its first row cannot be read.
 */
export async function firstColumns(input: SourceInput): Promise<Columns | null> {
  for (const file of await sourceFiles(SourceConfig.parse(input))) {
    for await (const row of fileRows(file)) {
      if ("problem" in row) throw row.problem;
      return row.columns;
    }
  }
  return null;
}
