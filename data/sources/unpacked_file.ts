import { contentHash, contentName } from "./content_hash.ts";
import { DataError } from "../errors.ts";
import { removeFile, ROW_CACHE_MODE, type RowCache } from "../rows/row_cache.ts";
import { bytesOf, type SourceFile } from "./source_files.ts";
import { writeAll } from "../rows/write_all.ts";

const BUFFER_BYTES = 64 * 1024;
const UTF8 = new TextEncoder();

/** The JSON lines that a file was unpacked to. */
type Unpacked = { content: string; bytes: number };

/** Whether the rows of a file are read from the home's cache, not from the file itself. */
export function isUnpacked({ format, compression }: SourceFile): boolean {
  return format.rows !== undefined || compression !== null;
}

/**
 * The rows of a file, written to the cache as JSON lines while they are read. Text lines are copied
 * as they are, so their numbers and bytes are those of the decompressed file. Other readers see the
 * lines when they are finished, or no file.
 */
export class UnpackedFile {
  readonly #cache: RowCache;
  readonly #unfinished: string;
  readonly #out: Deno.FsFile;
  readonly #hash = contentHash();
  #bytes = 0;

  constructor(cache: RowCache) {
    cache.prepare();
    this.#cache = cache;
    this.#unfinished = cache.newPath();
    const options = { write: true, createNew: true, mode: ROW_CACHE_MODE };
    this.#out = Deno.openSync(this.#unfinished, options);
  }

  /**
   * The lines of a file in pieces that are written already, until the next one is read.
   * @throws {DataError} If the file is damaged or of a different format, or the disk is full.
   */
  async *piecesOf(file: SourceFile): AsyncGenerator<Uint8Array> {
    for await (const bytes of chunksOf(file)) {
      await this.#write(bytes);
      yield bytes;
    }
  }

  /** Keeps what was written, under the name of its content. */
  async finish(): Promise<Unpacked> {
    await this.#out.sync();
    const content = contentName(this.#hash);
    await Deno.rename(this.#unfinished, this.#cache.unpackedPath(content));
    return { content, bytes: this.#bytes };
  }

  /** Removes what was not finished. */
  close(): void {
    this.#out.close();
    removeFile(this.#unfinished);
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
    try {
      await writeAll(this.#out, bytes);
    } catch (error) {
      throw new DataError(
        `Cannot unpack rows to the home's cache: ${(error as Error).message}; make room there`,
        { file: "cache/rows" },
      );
    }
  }
}

async function* chunksOf(file: SourceFile): AsyncGenerator<Uint8Array> {
  const { rows } = file.format;
  if (rows === undefined) return yield* bytesOf(file);
  const packed = { path: file.path, named: file.path, bytes: () => bytesOf(file) };
  // Through one buffer: texts that wait to be written would be garbage that piles up.
  const buffer = new Uint8Array(BUFFER_BYTES);
  let used = 0;
  for await (const some of rows(packed)) {
    for (const row of some) {
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
  }
  yield buffer.subarray(0, used);
}
