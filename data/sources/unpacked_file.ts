import { createHash, type Hash } from "node:crypto";
import { DataError } from "../errors.ts";
import { removeFile, ROW_CACHE_MODE, type RowCache } from "../rows/row_cache.ts";
import { bytesOf, type SourceFile } from "./source_files.ts";
import { writeAll } from "../rows/write_all.ts";

/** Raise it when the same file unpacks to different lines. */
const VERSION = 2;
const BUFFER_BYTES = 256 * 1024;
const UTF8 = new TextEncoder();

/** What a file was unpacked to. */
type Unpacked = { path: string; sha256: string; bytes: number };

/** Whether the rows of a file are read from the home's cache, not from the file itself. */
export function isUnpacked({ format, compression }: SourceFile): boolean {
  return format.rows !== undefined || compression !== null;
}

/** Where the lines of a file with this content lie. */
export function unpackedPath(file: SourceFile, sha256: string, cache: RowCache): string {
  const how = createHash("sha256").update(
    JSON.stringify([VERSION, file.format.name, file.compression, sha256]),
  );
  return cache.unpackedPath(how.digest("hex"));
}

/**
 * Writes the rows of a file to the cache as JSON lines. Text lines are copied as they are, so their
 * numbers and bytes are those of the decompressed file. A reader sees all of them or no file.
 * @throws {DataError} If the file is damaged or of a different format.
 */
export async function unpack(
  file: SourceFile,
  sha256: string,
  cache: RowCache,
): Promise<Unpacked> {
  cache.prepare();
  const path = unpackedPath(file, sha256, cache);
  const unfinished = cache.newPath();
  const options = { write: true, createNew: true, mode: ROW_CACHE_MODE };
  const out = await Deno.open(unfinished, options);
  const written = { out, hash: createHash("sha256"), bytes: 0 };
  try {
    for await (const bytes of chunksOf(file)) await write(written, bytes);
    await out.sync();
    await Deno.rename(unfinished, path);
    return { path, sha256: written.hash.digest("hex"), bytes: written.bytes };
  } catch (error) {
    removeFile(unfinished);
    throw error;
  } finally {
    out.close();
  }
}

async function* chunksOf(file: SourceFile): AsyncGenerator<Uint8Array> {
  const { rows } = file.format;
  if (rows === undefined) return yield* bytesOf(file);
  const packed = { path: file.path, named: file.path, bytes: () => bytesOf(file) };
  // Through one buffer: texts that wait to be written would be garbage that piles up.
  const buffer = new Uint8Array(BUFFER_BYTES);
  let used = 0;
  for await (const row of rows(packed)) {
    const line = `${JSON.stringify(row)}\n`;
    let { read, written } = UTF8.encodeInto(line, buffer.subarray(used));
    if (read < line.length) {
      yield buffer.subarray(0, used);
      used = 0;
      ({ read, written } = UTF8.encodeInto(line, buffer));
      if (read < line.length) {
        yield UTF8.encode(line);
        continue;
      }
    }
    used += written;
  }
  yield buffer.subarray(0, used);
}

async function write(
  written: { out: Deno.FsFile; hash: Hash; bytes: number },
  bytes: Uint8Array,
): Promise<void> {
  written.hash.update(bytes);
  written.bytes += bytes.length;
  try {
    await writeAll(written.out, bytes);
  } catch (error) {
    throw new DataError(
      `Cannot unpack rows to the home's cache: ${(error as Error).message}; make room there`,
      { file: "cache/rows" },
    );
  }
}
