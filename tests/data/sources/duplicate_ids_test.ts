import fc from "fast-check";
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { DuplicateIds, hashOf } from "../../../data/sources/duplicate_ids.ts";
import type { PairLimits } from "../../../data/rows/hash_pairs.ts";
import { RowCache } from "../../../data/rows/row_cache.ts";
import { rowHome } from "../row_home.ts";

const cache = new RowCache(await rowHome());
cache.prepare();

const LIMITS = [undefined, { held: 1, read: 4 }, { held: 3, read: 1 << 10 }];

/** What is found among `ids`, in order of the later row, and how many ids were read again. */
async function found(ids: readonly string[], limits?: PairLimits) {
  let read = 0;
  const idsAt = (places: number[]) => {
    read += places.length;
    return Promise.resolve(places.map((place) => ids[place]!));
  };
  const duplicates = new DuplicateIds({ cache, idsAt, limits });
  try {
    ids.forEach((id, place) => duplicates.add(id, place));
    const all = await Array.fromAsync(duplicates.found());
    return { all: all.sort((a, b) => a.again - b.again), read };
  } finally {
    duplicates.close();
  }
}

/** The same by a map in memory. */
function byMap(ids: readonly string[]) {
  const firsts = new Map<string, number>();
  return ids.flatMap((id, again) => {
    const first = firsts.get(id);
    if (first === undefined) firsts.set(id, again);
    return first === undefined ? [] : [{ id, first, again }];
  });
}

Deno.test("DuplicateIds finds what a map of all ids finds, in memory and on disk", async () => {
  const ids = fc.array(fc.string({ maxLength: 2 }), { maxLength: 200 });
  await fc.assert(
    fc.asyncProperty(ids, fc.constantFrom(...LIMITS), async (some, limits) => {
      deepStrictEqual((await found(some, limits)).all, byMap(some));
    }),
    { numRuns: 60, seed: 12 },
  );
  deepStrictEqual([...Deno.readDirSync(cache.dir)], []);
});

Deno.test("DuplicateIds reads again only ids whose hashes are equal", async () => {
  const ids = Array.from({ length: 50_000 }, (_, n) => `row-${n}`);
  deepStrictEqual(await found([...ids, "row-7"], { held: 64, read: 1000 }), {
    all: [{ id: "row-7", first: 7, again: 50_000 }],
    read: 2,
  });
});

Deno.test("DuplicateIds calls ids of one hash different if they differ", async () => {
  // What is read again says other ids than were added: as if the added ones had collided.
  const duplicates = new DuplicateIds({
    cache,
    idsAt: (places) => Promise.resolve(places.map((place) => `id-${place}`)),
  });
  duplicates.add("same", 0);
  duplicates.add("same", 1);
  strictEqual((await Array.fromAsync(duplicates.found())).length, 0);
  duplicates.close();
});

Deno.test("hashOf() is a whole number of 53 bits, which nearby ids do not share", () => {
  const hashes = new Set<number>();
  for (let n = 0; n < 20_000; n++) {
    const hash = hashOf(`row-${n}`);
    strictEqual(Number.isSafeInteger(hash) && hash >= 0, true);
    hashes.add(hash);
  }
  strictEqual(hashes.size, 20_000);
  strictEqual(hashOf("a"), 7929297801672961); // As published with cyrb53.
});
