import { removeFile, ROW_CACHE_MODE, type RowCache } from "./row_cache.ts";
import { writeAllSync } from "./write_all.ts";

const PARTITIONS = 64;
const NUMBERS = 2;
/** In place of a hash, which is never negative. */
const EMPTY = -1;
/** How often pairs are divided at most: 53 bits of a hash have no more partitions. */
const LEVELS = 8;

/** Pairs in memory. `held`: of one partition, the others are on disk; `read`: back from there. */
export type PairLimits = { held: number; read: number };
const LIMITS: PairLimits = { held: 512, read: 1 << 18 };

/** `used`: numbers that are in memory; `filed`: numbers that are on disk. */
type Partition = { held: Float64Array; used: number; path: string; filed: number };

/**
 * Pairs of a hash (a whole number of 53 bits) and a place. Those with equal hashes are found in
 * constant memory: pairs are divided among files by their hashes, and each file is looked through
 * alone, or divided again if it is large.
 */
export class HashPairs {
  readonly #cache: RowCache;
  readonly #limits: PairLimits;
  readonly #level: number;
  readonly #partitions: Partition[];

  /** `level`: how often the pairs were divided before. */
  constructor(
    cache: RowCache,
    { limits = LIMITS, level = 0 }: { limits?: PairLimits; level?: number } = {},
  ) {
    this.#cache = cache;
    this.#limits = limits;
    this.#level = level;
    this.#partitions = Array.from({ length: PARTITIONS }, () => ({
      held: new Float64Array(NUMBERS * limits.held),
      used: 0,
      path: cache.newPath(),
      filed: 0,
    }));
  }

  add(hash: number, place: number): void {
    const partition = this.#partitions[Math.floor(hash / PARTITIONS ** this.#level) % PARTITIONS]!;
    if (partition.used === partition.held.length) spill(partition);
    partition.held[partition.used++] = hash;
    partition.held[partition.used++] = place;
  }

  /** The places of each hash that occurs more than once, in the order of `add`. */
  *placesOfEqualHashes(): Generator<number[]> {
    const room = new PairRoom();
    for (const partition of this.#partitions) {
      const { filed, held, used } = partition;
      const divided = filed > NUMBERS * this.#limits.read && this.#level + 1 < LEVELS;
      if (divided) yield* this.#divided(partition);
      else if (filed === 0) yield* room.placesOfEqualHashes(held.subarray(0, used));
      else {
        spill(partition);
        yield* room.placesOfEqualHashes(room.pairsOf(partition));
      }
    }
  }

  /** Removes what is on disk. */
  close(): void {
    for (const { filed, path } of this.#partitions) if (filed > 0) removeFile(path);
  }

  *#divided(partition: Partition): Generator<number[]> {
    spill(partition);
    const level = this.#level + 1;
    const parts = new HashPairs(this.#cache, { limits: this.#limits, level });
    try {
      const some = new Float64Array(NUMBERS * this.#limits.held);
      using file = Deno.openSync(partition.path);
      for (let at = 0; at < partition.filed; at += some.length) {
        const numbers = some.subarray(0, Math.min(some.length, partition.filed - at));
        readAllSync(file, numbers);
        for (let i = 0; i < numbers.length; i += NUMBERS) parts.add(numbers[i]!, numbers[i + 1]!);
      }
      yield* parts.placesOfEqualHashes();
    } finally {
      parts.close();
    }
  }
}

/** Buffers for one partition at a time: new ones would be garbage that piles up. */
class PairRoom {
  #pairs = new Float64Array();
  /** A hash is in the first slot that is free from `firstSlot` on. */
  #slots = new Float64Array();

  /** All pairs of a partition that is on disk, until the next is read. */
  pairsOf({ path, filed }: Partition): Float64Array {
    if (this.#pairs.length < filed) this.#pairs = new Float64Array(filed);
    const pairs = this.#pairs.subarray(0, filed);
    using file = Deno.openSync(path);
    readAllSync(file, pairs);
    return pairs;
  }

  placesOfEqualHashes(pairs: Float64Array): Iterable<number[]> {
    const count = pairs.length / NUMBERS;
    if (this.#slots.length < 2 * count) {
      this.#slots = new Float64Array(2 ** Math.ceil(Math.log2(2 * count)));
    }
    const slots = this.#slots.fill(EMPTY);
    const groups = new Map<number, number[]>();
    for (let i = 0; i < pairs.length; i += NUMBERS) {
      const hash = pairs[i]!;
      let at = firstSlot(hash, slots.length);
      while (slots[at] !== EMPTY && slots[at] !== hash) at = (at + 1) & (slots.length - 1);
      if (slots[at] === hash) groups.set(hash, []);
      slots[at] = hash;
    }
    if (groups.size === 0) return [];
    for (let at = 0; at < pairs.length; at += NUMBERS) {
      groups.get(pairs[at]!)?.push(pairs[at + 1]!);
    }
    return groups.values();
  }
}

/**
 * Where a hash is looked for first, among slots that are a power of 2: by its high bits, as hashes of
 * one partition agree in the low ones.
 */
function firstSlot(hash: number, slots: number): number {
  return (hash / 2 ** 21 >>> 0) & (slots - 1);
}

/** Appends what is in memory to the partition's file, which is open only meanwhile. */
function spill(partition: Partition): void {
  const { path, held, used } = partition;
  using file = Deno.openSync(path, { append: true, create: true, mode: ROW_CACHE_MODE });
  writeAllSync(file, new Uint8Array(held.buffer, 0, used * Float64Array.BYTES_PER_ELEMENT));
  partition.filed += used;
  partition.used = 0;
}

function readAllSync(file: Deno.FsFile, numbers: Float64Array): void {
  const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  for (let at = 0; at < bytes.length;) {
    const read = file.readSync(bytes.subarray(at));
    if (read === null) {
      throw new RangeError("Cannot read hashes of ids back: their file ends early");
    }
    at += read;
  }
}
