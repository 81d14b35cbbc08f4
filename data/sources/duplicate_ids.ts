import { HashPairs, type PairLimits } from "../rows/hash_pairs.ts";
import type { RowCache } from "../rows/row_cache.ts";

const PLACES_READ = 512;

type Options = {
  cache: RowCache;
  /** The ids of rows at these places. */
  idsAt: (places: number[]) => Promise<string[]>;
  limits?: PairLimits;
};

/** A row whose id a row at an earlier place already has. */
export type DuplicateId = { id: string; first: number; again: number };

/**
 * Finds rows that share an id, exactly, in constant memory: only hashes of ids are kept. Ids whose
 * hashes are equal are read again and compared: two ids with one hash are no duplicates.
 */
export class DuplicateIds {
  readonly #options: Options;
  readonly #pairs: HashPairs;

  constructor(options: Options) {
    this.#options = options;
    this.#pairs = new HashPairs(options.cache, { limits: options.limits });
  }

  /** Remembers the id of the row at `place`. Places rise. */
  add(id: string, place: number): void {
    this.#pairs.add(hashOf(id), place);
  }

  /** Every row whose id an earlier row has, with the first row of that id; in no order. */
  async *found(): AsyncGenerator<DuplicateId> {
    for (const places of this.#pairs.placesOfEqualHashes()) {
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

  /** Removes what is on disk. */
  close(): void {
    this.#pairs.close();
  }
}

/**
 * 53 bits of a text. Quick and without garbage, which a sha256 of each id is not: its memory piles
 * up with the rows. A file with many ids of one hash is only slow to read. Source: cyrb53,
 * https://github.com/bryc/code/blob/master/jshash/experimental/cyrb53.js (public domain).
 */
export function hashOf(text: string): number {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 2654435761);
    b = Math.imul(b ^ unit, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return 2 ** 32 * (b & 0x1fffff) + (a >>> 0);
}
