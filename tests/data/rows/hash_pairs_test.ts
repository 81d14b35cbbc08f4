import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { HashPairs, type PairLimits } from "../../../data/rows/hash_pairs.ts";
import { RowCache } from "../../../data/rows/row_cache.ts";
import { rowHome } from "../row_home.ts";

const cache = new RowCache(await rowHome());
cache.prepare();

const files = () => [...Deno.readDirSync(cache.dir)].length;

/** The groups that are found, ordered by their first place, and the most files on disk. */
function groups(hashes: readonly number[], limits?: PairLimits) {
  const pairs = new HashPairs(cache, { limits });
  try {
    hashes.forEach((hash, place) => pairs.add(hash, place));
    let files_max = files();
    const found: number[][] = [];
    for (const places of pairs.placesOfEqualHashes()) {
      files_max = Math.max(files_max, files());
      found.push(places);
    }
    return { found: found.sort((a, b) => a[0]! - b[0]!), files_max };
  } finally {
    pairs.close();
  }
}

function byMap(hashes: readonly number[]): number[][] {
  const places = Map.groupBy(hashes.keys(), (place) => hashes[place]!);
  return [...places.values()].filter((one) => one.length > 1);
}

Deno.test("HashPairs finds what a map finds, in memory, on disk and divided again", () => {
  const hash = fc.oneof(
    fc.nat({ max: 200 }),
    fc.constantFrom(...[1, 2, 3, 8].map((power) => 64 ** power), Number.MAX_SAFE_INTEGER),
  );
  const limits = fc.constantFrom(undefined, { held: 1, read: 2 }, { held: 3, read: 100 });
  fc.assert(
    fc.property(fc.array(hash, { maxLength: 120 }), limits, (hashes, some) => {
      deepStrictEqual(groups(hashes, some).found, byMap(hashes));
    }),
    { numRuns: 60, seed: 12 },
  );
  strictEqual(files(), 0);
});

Deno.test("HashPairs keeps few pairs in memory, and ends although no division helps", () => {
  const same = Array.from({ length: 500 }, () => 64 ** 8 + 5);
  const { found, files_max } = groups(same, { held: 2, read: 10 });
  deepStrictEqual(found, [Array.from(same.keys())]);
  ok(files_max > 7, `${files_max} files`);
  strictEqual(files(), 0);
});

Deno.test("HashPairs touches no disk while there are few pairs", () => {
  deepStrictEqual(groups([7, 8, 7]), { found: [[0, 2]], files_max: 0 });
});
