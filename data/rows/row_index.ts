import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { z } from "zod";
import { ROW_CACHE_MODE } from "./row_cache.ts";
import { writeAllSync } from "./write_all.ts";

/**
 * Where a row is: the number of its file among the table's files, the line's first byte in it, and
 * the line's length in bytes.
 */
export type RowEntry = { file: number; start: number; length: number };

const ENTRY_BYTES = 16;
const BUFFERED_ENTRIES = 4096;
const FOOTER_BYTES_MAX = 64 * 1024 * 1024;
const LENGTH_BYTES = 4;

const IndexedFile = z.strictObject({
  rows: z.int().nonnegative(),
  /** Its rows in the table: without those left out as duplicates. */
  kept: z.int().nonnegative(),
  /** Of the JSON lines that the file was unpacked to; null: its own lines are read. */
  unpacked: z.strictObject({ content: z.string(), bytes: z.int() }).nullable(),
  shapes: z.array(
    z.strictObject({ name: z.string(), rows: z.int().positive(), fields: z.array(z.string()) }),
  ),
});
/** What an index knows of one file, in the table's order. */
export type IndexedFile = z.infer<typeof IndexedFile>;

const Footer = z.strictObject({
  key: z.string(),
  size: z.int().positive(),
  digest: z.string(),
  entries_sha256: z.string(),
  files: z.array(IndexedFile),
});
/** What an index says besides the places of rows. `digest`: of the table. */
export type IndexFooter = z.infer<typeof Footer>;

/**
 * Writes the index of a table: 16 bytes per row (file number, length, first byte, little-endian),
 * then a footer in JSON and its length. The file is derived: it can be made again from the sources.
 */
export class RowIndexWriter {
  readonly #file: Deno.FsFile;
  readonly #hash = createHash("sha256");
  readonly #buffer = new DataView(new ArrayBuffer(BUFFERED_ENTRIES * ENTRY_BYTES));
  #buffered = 0;
  #size = 0;

  constructor(readonly path: string) {
    this.#file = Deno.openSync(path, {
      write: true,
      create: true,
      truncate: true,
      mode: ROW_CACHE_MODE,
    });
  }

  /** Rows so far. */
  get size(): number {
    return this.#size;
  }

  add({ file, start, length }: RowEntry): void {
    const at = this.#buffered * ENTRY_BYTES;
    this.#buffer.setUint32(at, file, true);
    this.#buffer.setUint32(at + 4, length, true);
    this.#buffer.setFloat64(at + 8, start, true);
    this.#buffered++;
    this.#size++;
    if (this.#buffered === BUFFERED_ENTRIES) this.flush();
  }

  /** Entries that were added can be read from here on. */
  flush(): void {
    const bytes = new Uint8Array(this.#buffer.buffer, 0, this.#buffered * ENTRY_BYTES);
    this.#hash.update(bytes);
    writeAllSync(this.#file, bytes);
    this.#buffered = 0;
  }

  /** Ends the file. */
  finish(footer: Omit<IndexFooter, "size" | "entries_sha256">): IndexFooter {
    this.flush();
    const { key, digest, files } = footer;
    const entries_sha256 = this.#hash.digest("hex");
    const whole = { key, size: this.#size, digest, entries_sha256, files };
    const text = new TextEncoder().encode(JSON.stringify(whole));
    const length = new DataView(new ArrayBuffer(LENGTH_BYTES));
    length.setUint32(0, text.length, true);
    writeAllSync(this.#file, text);
    writeAllSync(this.#file, new Uint8Array(length.buffer));
    this.#file.syncSync();
    this.close();
    return whole;
  }

  close(): void {
    try {
      this.#file.close();
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) throw error; // Closed before.
    }
  }
}

/** Entries at these places of an index file, in this order. */
export async function readEntries(path: string, places: readonly number[]): Promise<RowEntry[]> {
  const handle = await open(path);
  try {
    const entries: RowEntry[] = [];
    for (const { from, count } of spansOf(places)) {
      const bytes = new Uint8Array(count * ENTRY_BYTES);
      const { bytesRead } = await handle.read(bytes, 0, bytes.length, from * ENTRY_BYTES);
      if (bytesRead !== bytes.length) throw new RangeError(`the index ends before row ${from}`);
      const view = new DataView(bytes.buffer);
      for (let at = 0; at < bytes.length; at += ENTRY_BYTES) {
        entries.push({
          file: view.getUint32(at, true),
          length: view.getUint32(at + 4, true),
          start: view.getFloat64(at + 8, true),
        });
      }
    }
    return entries;
  } finally {
    await handle.close();
  }
}

/** Places that follow each other are read at once. */
function* spansOf(places: readonly number[]): Generator<{ from: number; count: number }> {
  for (let i = 0; i < places.length;) {
    const from = places[i]!;
    let count = 1;
    while (places[i + count] === from + count) count++;
    yield { from, count };
    i += count;
  }
}

/**
 * The footer of an index file; null if there is no such file; "damaged" if it is torn, garbage, or
 * of another key.
 */
export async function readIndex(
  path: string,
  key: string,
): Promise<IndexFooter | null | "damaged"> {
  const handle = await open(path).catch((error) => {
    if (["ENOENT", "ENOTDIR"].includes(error.code)) return null;
    throw error;
  });
  if (handle === null) return null;
  try {
    const { size } = await handle.stat();
    const read = async (start: number, length: number) => {
      const bytes = new Uint8Array(length);
      await handle.read(bytes, 0, length, start);
      return bytes;
    };
    if (size < LENGTH_BYTES) return "damaged";
    const tail = await read(size - LENGTH_BYTES, LENGTH_BYTES);
    const length = new DataView(tail.buffer).getUint32(0, true);
    const entries = size - LENGTH_BYTES - length;
    if (entries < 0 || length > FOOTER_BYTES_MAX) return "damaged";
    const text = new TextDecoder().decode(await read(entries, length));
    const footer = Footer.safeParse(JSON.parse(text)).data;
    if (footer?.key !== key || footer.size * ENTRY_BYTES !== entries) return "damaged";
    const hash = createHash("sha256");
    const chunk = BUFFERED_ENTRIES * ENTRY_BYTES;
    for (let at = 0; at < entries; at += chunk) {
      hash.update(await read(at, Math.min(chunk, entries - at)));
    }
    return hash.digest("hex") === footer.entries_sha256 ? footer : "damaged";
  } catch (error) {
    if (error instanceof SyntaxError) return "damaged";
    if ((error as { code?: string }).code === "EISDIR") return "damaged";
    throw error;
  } finally {
    await handle.close();
  }
}
