import { type FileHandle, open } from "node:fs/promises";
import {
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  parquetMetadataAsync,
} from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { DataError } from "../errors.ts";
import type { Columns } from "../rows/row_fields.ts";
import { bytesAt } from "./bytes_at.ts";
import type { DataFormat, PackedFile } from "./format.ts";
import { jsonValue } from "./json_value.ts";
import { type ParquetSource, rowsOfGroup } from "./parquet_pages.ts";

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
 * Apache Parquet: all codecs, nested columns, dates as ISO 8601 texts. One page of each column is
 * in memory at a time.
 */
export const parquet: DataFormat = {
  name: "parquet",
  endings: [".parquet"],
  compressible: false,
  counts: "row",
  rows: readParquet,
};

async function* readParquet({ path, named }: PackedFile): AsyncGenerator<Columns[]> {
  const handle = await open(path);
  try {
    const file = await bufferOf(handle);
    yield* rowsOf({ file, metadata: await metadataOf(file, named), compressors: CODECS }, named);
  } finally {
    await handle.close();
  }
}

async function* rowsOf(source: ParquetSource, named: string): AsyncGenerator<Columns[]> {
  let [read, end] = [0, 0];
  try {
    for (const group of source.metadata.row_groups) {
      end += Number(group.num_rows);
      for await (const rows of rowsOfGroup(source, group)) {
        yield rows.map((row) => jsonValue(row) as Columns);
        read += rows.length;
      }
    }
  } catch (error) {
    throw new DataError(
      `the rows from this one to row ${end} cannot be decoded (${(error as Error).message}); the ` +
        "file is damaged: write or download it again",
      { file: named, row: read + 1 },
    );
  }
}

async function bufferOf(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat();
  return {
    byteLength: size,
    async slice(start, end = size) {
      return (await bytesAt(handle, start < 0 ? size + start : start, end)).buffer;
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
