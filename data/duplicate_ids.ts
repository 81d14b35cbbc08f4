import { createHash } from "node:crypto";
import { removeFile, ROW_CACHE_MODE, type RowCache } from "./row_cache.ts";
import { writeAllSync } from "./write_all.ts";

const BUFFERED_IDS = 1 << 17;
const PARTITIONS = 64;
const HASH_BYTES = 6;
const NUMBERS_PER_ID = 2;
const PLACES_READ = 512;

type Options = {
  cache: RowCache;
  /** The ids of rows at these places. */
  idsAt: (places: number[]) => Promise<string[]>;
  /** Ids in memory before they go to disk. */
  buffered?: number;
};

/** A row whose id a row at an earlier place already has. */
export type DuplicateId = { id: string; first: number; again: number };

/**
 * Finds rows that share an id, exactly, in constant memory. An id is held as 48 bits of its sha256;
 * once there are many, they are divided among files by their hashes, and each file is looked
 * through alone. Ids whose hashes are equal are read again and compared: two ids with one hash are
 * no duplicates.
 */
export class DuplicateIds {
  readonly #options: Options;
  readonly #buffer: Float64Array;
  readonly #files: (Deno.FsFile | undefined)[] = [];
  readonly #paths: string[] = [];
  #held = 0;

  constructor(options: Options) {
    this.#options = options;
    this.#buffer = new Float64Array(NUMBERS_PER_ID * (options.buffered ?? BUFFERED_IDS));
  }

  /** Remembers the id of the row at `place`. Places rise. */
  add(id: string, place: number): void {
    if (this.#held === this.#buffer.length) this.#spill();
    const hash = createHash("sha256").update(id).digest().readUIntBE(0, HASH_BYTES);
    this.#buffer[this.#held++] = hash;
    this.#buffer[this.#held++] = place;
  }

  /** Every row whose id an earlier row has, with the first row of that id; in no order. */
  async *found(): AsyncGenerator<DuplicateId> {
    if (this.#paths.length === 0) {
      return yield* this.#among(this.#buffer.subarray(0, this.#held));
    }
    this.#spill();
    for (const path of Object.values(this.#paths)) {
      const bytes = await Deno.readFile(path);
      yield* this.#among(new Float64Array(bytes.buffer));
    }
  }

  /** Removes what is on disk. */
  close(): void {
    for (const file of this.#files) file?.close();
    for (const path of Object.values(this.#paths)) removeFile(path);
    this.#files.length = 0;
    this.#paths.length = 0;
  }

  #spill(): void {
    const parts = Array.from({ length: PARTITIONS }, (): number[] => []);
    for (let at = 0; at < this.#held; at += NUMBERS_PER_ID) {
      const hash = this.#buffer[at]!;
      parts[hash % PARTITIONS]!.push(hash, this.#buffer[at + 1]!);
    }
    parts.forEach((part, number) => {
      const bytes = new Uint8Array(Float64Array.from(part).buffer);
      const file = this.#files[number] ??= Deno.openSync(
        this.#paths[number] = this.#options.cache.newPath(),
        { write: true, createNew: true, mode: ROW_CACHE_MODE },
      );
      writeAllSync(file, bytes);
    });
    this.#held = 0;
  }

  async *#among(held: Float64Array): AsyncGenerator<DuplicateId> {
    for (const places of placesOfEqualHashes(held)) {
      const firsts = new Map<string, number>();
      for (let from = 0; from < places.length; from += PLACES_READ) {
        const some = places.slice(from, from + PLACES_READ);
        const ids = await this.#options.idsAt(some);
        for (const [i, id] of ids.entries()) {
          const first = firsts.get(id);
          if (first === undefined) firsts.set(id, some[i]!);
          else yield { id, first, again: some[i]! };
        }
      }
    }
  }
}

/** Of (hash, place) pairs in order of place: the places of each hash that occurs twice. */
function placesOfEqualHashes(held: Float64Array): Iterable<number[]> {
  const hashes = held.filter((_, i) => i % NUMBERS_PER_ID === 0).sort();
  const groups = new Map<number, number[]>();
  for (let i = 1; i < hashes.length; i++) {
    if (hashes[i] === hashes[i - 1]) groups.set(hashes[i]!, []);
  }
  if (groups.size === 0) return [];
  for (let at = 0; at < held.length; at += NUMBERS_PER_ID) {
    groups.get(held[at]!)?.push(held[at + 1]!);
  }
  return groups.values();
}
