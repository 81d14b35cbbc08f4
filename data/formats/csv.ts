import { Readable } from "node:stream";
import { type CsvError, parse } from "csv-parse";
import { DataError } from "../errors.ts";
import type { Columns } from "../rows/row_fields.ts";
import { utf8OfLatin1 } from "../utf8_text.ts";
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

async function* readCsv(file: PackedFile): AsyncGenerator<Columns[]> {
  let text = utf8OfLatin1;
  const parser = parse({
    bom: true,
    // One character per byte: what is not UTF-8 would become U+FFFD silently.
    encoding: "latin1",
    columns: (names: string[]) => checkedHeader(names, file),
    skip_empty_lines: true,
    cast: (value, { quoting, header }) => value === "" && !quoting && !header ? null : text(value),
  });
  const bytes = Readable.from(withoutMark(file, () => text = (value) => value));
  // A pipe passes on no errors: without this, reading a damaged archive would never end.
  bytes.on("error", (error) => parser.destroy(error));
  try {
    for await (const row of bytes.pipe(parser)) {
      const rows = [row as Columns];
      // Those that are parsed already: to wait for each takes longer than to parse it.
      for (let next = parser.read(); next !== null; next = parser.read()) rows.push(next);
      yield rows;
    }
  } catch (error) {
    const { code, lines, message } = error as CsvError & { lines?: number };
    if (!code?.startsWith("CSV_")) throw error;
    throw new DataError(
      `the file is not CSV (${
        text(message)
      }); every row must have one cell per column of the first ` +
        "row, and a cell with a comma, quote or newline must be quoted",
      { file: file.named, line: lines },
    );
  } finally {
    bytes.destroy();
  }
}

const UTF8_MARK = [0xef, 0xbb, 0xbf];
const UTF16_MARK = [0xff, 0xfe];

/**
 * The bytes of a file without the byte order mark of UTF-8. That of UTF-16 stays: the parser then
 * reads cells as text.
 */
async function* withoutMark(file: PackedFile, utf16: () => void): AsyncGenerator<Uint8Array> {
  const begin: number[] = []; // A chunk may be shorter than the mark.
  for await (const chunk of file.bytes()) {
    if (begin.length >= UTF8_MARK.length) {
      yield chunk;
      continue;
    }
    for (const byte of chunk) begin.push(byte);
    if (begin.length < UTF8_MARK.length) continue;
    if (UTF16_MARK.every((byte, i) => begin[i] === byte)) utf16();
    const marked = UTF8_MARK.every((byte, i) => begin[i] === byte);
    yield Uint8Array.from(marked ? begin.slice(UTF8_MARK.length) : begin);
  }
  if (begin.length < UTF8_MARK.length) yield Uint8Array.from(begin);
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
