import { Readable } from "node:stream";
import { type CsvError, parse } from "csv-parse";
import { DataError } from "../errors.ts";
import type { Columns } from "../row_fields.ts";
import type { DataFormat, PackedFile } from "./format.ts";

/**
 * Comma-separated values with a header (RFC 4180): quoted cells may hold commas and newlines. Every
 * value is text; an empty cell without quotes is null.
 */
export const csv: DataFormat = {
  name: "csv",
  endings: [".csv"],
  compressible: true,
  counts: "row",
  rows: readCsv,
};

async function* readCsv(file: PackedFile): AsyncGenerator<Columns> {
  const parser = parse({
    bom: true,
    columns: (names: string[]) => checkedHeader(names, file),
    skip_empty_lines: true,
    cast: (value, { quoting, header }) => value === "" && !quoting && !header ? null : value,
  });
  const bytes = Readable.from(file.bytes());
  // A pipe passes on no errors: without this, reading a damaged archive would never end.
  bytes.on("error", (error) => parser.destroy(error));
  try {
    for await (const row of bytes.pipe(parser)) yield row as Columns;
  } catch (error) {
    const { code, lines, message } = error as CsvError & { lines?: number };
    if (!code?.startsWith("CSV_")) throw error;
    throw new DataError(
      `the file is not CSV (${message}); every row must have one cell per column of the first ` +
        "row, and a cell with a comma, quote or newline must be quoted",
      { file: file.named, ...(lines !== undefined && { line: lines }) },
    );
  } finally {
    bytes.destroy();
  }
}

function checkedHeader(names: string[], { named }: PackedFile): string[] {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) {
    throw new DataError(`two columns are called '${twice}'; give each its own name`, {
      file: named,
      line: 1,
    });
  }
  return names;
}
