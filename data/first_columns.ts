import { linesOf, parseLine } from "./json_lines.ts";
import type { Columns } from "./row_fields.ts";
import { SourceConfig, type SourceInput } from "./source_config.ts";
import { bytesOf, sourceFiles } from "./source_files.ts";

/**
 * The columns of a source's first row, read without opening the rest of it; null: it has no row.
 * @throws {DataError} If the source or its first row cannot be read.
 */
export async function firstColumns(input: SourceInput): Promise<Columns | null> {
  for (const file of await sourceFiles(SourceConfig.parse(input))) {
    const { path, format } = file;
    const bytes = () => bytesOf(file);
    if (format.rows !== undefined) {
      for await (const columns of format.rows({ path, named: path, bytes })) return columns;
      continue;
    }
    for await (const { line, bytes: text } of linesOf(bytes(), path)) {
      const columns = parseLine(text, { file: path, line });
      if (columns !== null) return columns;
    }
  }
  return null;
}
