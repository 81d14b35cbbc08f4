import { DataError, type DataPlace } from "../errors.ts";
import { blocksOf, linesIn, parseLine } from "./json_lines.ts";
import type { Columns } from "../rows/row_fields.ts";
import { bytesOf, type SourceFile } from "./source_files.ts";

/** A row of a file, or why its line is none. */
export type FileRow = { place: DataPlace } & ({ columns: Columns } | { problem: DataError });

/**
 * The rows of a file from its beginning, one at a time, without an index. A line that is no row is
 * handed out with its problem; rows of formats that are unpacked end at the first problem.
 * @throws {DataError} If the file is not of its format, or damaged.
 */
export async function* fileRows(file: SourceFile): AsyncGenerator<FileRow> {
  const { path, format } = file;
  const bytes = () => bytesOf(file);
  if (format.rows !== undefined) {
    let row = 0;
    for await (const rows of format.rows({ path, named: path, bytes })) {
      for (const columns of rows) yield { place: { file: path, row: ++row }, columns };
    }
    return;
  }
  for await (const block of blocksOf(bytes(), path)) {
    for (const { line, text } of linesIn(block)) {
      const place = { file: path, line };
      const read = parsed(text, place);
      if (read !== null) yield { place, ...read };
    }
  }
}

function parsed(
  text: string,
  place: DataPlace,
): { columns: Columns } | { problem: DataError } | null {
  try {
    const columns = parseLine(text, place);
    return columns && { columns };
  } catch (problem) {
    if (problem instanceof DataError) return { problem };
    throw problem;
  }
}
