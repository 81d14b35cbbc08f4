import { type FileHandle, open } from "node:fs/promises";
import {
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
} from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { DataError } from "../errors.ts";
import type { Columns } from "../row_fields.ts";
import type { DataFormat, PackedFile } from "./format.ts";
import { jsonValue } from "./json_value.ts";

/** Columns decoded at once: bounds the memory of a large row group. */
const SPAN_BYTES = 32 * 1024 * 1024;
const SPAN_ROWS_MIN = 256;
const SPAN_ROWS_MAX = 65_536;

/**
 * All codecs. A page without values, as of a column of nulls, has nothing to decompress: the
 * library's LZ4 (hyparquet-compressors 1.1.2) fails on the one byte that pyarrow writes for it.
 */
const CODECS: Compressors = Object.fromEntries(
  Object.entries(compressors).map(([name, decompress]) => [
    name,
    (input: Uint8Array, bytes: number) =>
      bytes === 0 ? new Uint8Array() : decompress!(input, bytes),
  ]),
);

/**
 * Apache Parquet: all codecs, nested columns, dates as ISO 8601 texts. A row group is decoded in
 * spans of rows, one in memory at a time.
 */
export const parquet: DataFormat = {
  name: "parquet",
  endings: [".parquet"],
  compressible: false,
  counts: "row",
  rows: (file) => readParquet(file),
};

/** The rows of a file; at most `span_rows` are decoded at once. */
export async function* readParquet(
  { path, named }: Pick<PackedFile, "path" | "named">,
  { span_rows = SPAN_ROWS_MAX }: { span_rows?: number } = {},
): AsyncGenerator<Columns> {
  const handle = await open(path);
  try {
    const file = await bufferOf(handle);
    const metadata = await metadataOf(file, named);
    for (const { from, to } of spansOf(metadata, span_rows)) {
      const rows = await span({ file, metadata, from, to }, named);
      for (const row of rows) yield jsonValue(row) as Columns;
    }
  } finally {
    await handle.close();
  }
}

async function bufferOf(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat();
  return {
    byteLength: size,
    async slice(start, end = size) {
      const from = start < 0 ? size + start : start;
      const bytes = new Uint8Array(Math.max(0, end - from));
      let at = 0;
      while (at < bytes.length) {
        const { bytesRead } = await handle.read(bytes, at, bytes.length - at, from + at);
        if (bytesRead === 0) throw new RangeError(`the file ends at byte ${from + at}`);
        at += bytesRead;
      }
      return bytes.buffer;
    },
  };
}

async function metadataOf(file: AsyncBuffer, named: string): Promise<FileMetaData> {
  try {
    return await parquetMetadataAsync(file);
  } catch (error) {
    throw new DataError(
      `the file is no Parquet, or it is cut off (${(error as Error).message}); write or download ` +
        "it again, or name its `format`",
      { file: named },
    );
  }
}

/** Rows of a file that are decoded together, [from, to). */
function* spansOf(
  { row_groups }: FileMetaData,
  rowsMax: number,
): Generator<{ from: number; to: number }> {
  let start = 0;
  for (const { num_rows, total_byte_size } of row_groups) {
    const [rows, bytes] = [Number(num_rows), Math.max(Number(total_byte_size), 1)];
    const fitting = Math.floor(rows * SPAN_BYTES / bytes);
    const most = Math.min(Math.max(fitting, SPAN_ROWS_MIN), rowsMax);
    for (let from = 0; from < rows; from += most) {
      yield { from: start + from, to: start + Math.min(from + most, rows) };
    }
    start += rows;
  }
}

type Span = { file: AsyncBuffer; metadata: FileMetaData; from: number; to: number };

async function span({ file, metadata, from, to }: Span, named: string): Promise<unknown[]> {
  try {
    return await parquetReadObjects({
      file,
      metadata,
      compressors: CODECS,
      rowStart: from,
      rowEnd: to,
      useOffsetIndex: true,
      utf8: false,
    });
  } catch (error) {
    throw new DataError(
      `the rows from this one to row ${to} cannot be decoded (${(error as Error).message}); the ` +
        "file is damaged: write or download it again",
      { file: named, row: from + 1 },
    );
  }
}
