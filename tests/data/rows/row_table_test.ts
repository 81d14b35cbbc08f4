import fc from "fast-check";
import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { rowChunks, sourceSizes, tableOf, withoutRows } from "../../../data/mod.ts";

const rowOf = (n: number) => ({ row_id: String(n), prompt: `p${n}`, columns: {} });
const table = (size: number) => tableOf(Array.from({ length: size }, (_, n) => rowOf(n)), "d");
const idsOf = async (of: ReturnType<typeof table>, places: number[]) =>
  (await of.rows(places)).map(({ row_id }) => row_id);

Deno.test("a table gives rows in the order asked, and refuses other places", async () => {
  deepStrictEqual(await idsOf(table(3), [2, 0, 2]), ["2", "0", "2"]);
  const outside = (place: number) =>
    rejects(async () => await table(3).rows([0, place]), RangeError);
  for (const place of [-1, 3, 0.5]) await outside(place);
});

Deno.test("rowChunks() has every row once, in order, never more than asked", async () => {
  const chunks = await Array.fromAsync(rowChunks(table(10), { rows: 4 }));
  deepStrictEqual(chunks.map(({ from, rows }) => [from, rows.length]), [[0, 4], [4, 4], [8, 2]]);
  deepStrictEqual(chunks.flatMap(({ rows }) => rows).map(({ row_id }) => Number(row_id)), [
    ...Array(10).keys(),
  ]);
  const some = await Array.fromAsync(rowChunks(table(10), { rows: 4, to: 5 }));
  strictEqual(some.flatMap(({ rows }) => rows).length, 5);
});

Deno.test("withoutRows() has the rows that are left, in order", async () => {
  const omitted = fc.uniqueArray(fc.nat(29), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(omitted, async (some) => {
      const places = some.toSorted((a, b) => a - b);
      const remaining = withoutRows(table(30), places);
      const kept = [...Array(30).keys()].filter((n) => !places.includes(n));
      strictEqual(remaining.size, kept.length);
      deepStrictEqual(await idsOf(remaining, [...kept.keys()]), kept.map(String));
      await rejects(async () => await remaining.rows([remaining.size]), RangeError);
    }),
    { numRuns: 100, seed: 9 },
  );
});

Deno.test("sourceSizes() counts the rows of each source, also without some of them", () => {
  const rows = Array.from({ length: 6 }, (_, n) => rowOf(n));
  deepStrictEqual(sourceSizes(table(3)), [3]);
  const mixed = tableOf(rows, "d", [1, 3, 2]);
  deepStrictEqual(sourceSizes(mixed), [1, 3, 2]);
  deepStrictEqual(sourceSizes(withoutRows(mixed, [0, 2, 3, 5])), [0, 1, 1]);
});
