import { deepStrictEqual, notDeepStrictEqual, ok, throws } from "node:assert/strict";
import fc from "fast-check";
import { drawMixed, placeOfDraw, tableOf } from "../../../data/mod.ts";

const epoch = (seed: number, { rows, number }: { rows: number; number: number }) =>
  Array.from({ length: rows }, (_, i) => placeOfDraw(number * rows + i, { seed, rows }).place);

Deno.test("placeOfDraw() is a permutation of the rows in every epoch", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0 }),
      fc.integer({ min: 1, max: 700 }),
      fc.integer({ min: 0, max: 1000 }),
      (seed, rows, number) => {
        const places = epoch(seed, { rows, number }).sort((a, b) => a - b);
        deepStrictEqual(places, Array.from({ length: rows }, (_, i) => i));
      },
    ),
    { numRuns: 60 },
  );
});

Deno.test("placeOfDraw() depends on seed and epoch, the seed's high bits too", () => {
  const base = epoch(1, { rows: 50, number: 0 });
  notDeepStrictEqual(epoch(2, { rows: 50, number: 0 }), base);
  notDeepStrictEqual(epoch(1 + 2 ** 40, { rows: 50, number: 0 }), base);
  notDeepStrictEqual(epoch(1, { rows: 50, number: 1 }), base);
  deepStrictEqual(epoch(1, { rows: 50, number: 0 }), base);
});

Deno.test("placeOfDraw() puts every row at every place about equally often over seeds", () => {
  const [rows, seeds] = [5, 1000];
  const counts = Array.from({ length: rows }, () => new Array<number>(rows).fill(0));
  for (let seed = 0; seed < seeds; seed++) {
    epoch(seed, { rows, number: 0 }).forEach((place, i) => counts[i]![place]!++);
  }
  // Each cell is binomial(1000, 1/5): mean 200, standard deviation 12.6.
  for (const count of counts.flat()) {
    ok(Math.abs(count - 200) < 5 * 12.6, `a cell has ${count}, not about 200`);
  }
});

Deno.test("placeOfDraw() refuses a draw or a table that is none", () => {
  throws(() => placeOfDraw(-1, { seed: 0, rows: 3 }), /Cannot draw because -1/);
  throws(() => placeOfDraw(0, { seed: 0, rows: 0 }), /Cannot draw from 0 rows/);
});

Deno.test("drawMixed() reads each source in its own order, epoch by epoch", async () => {
  const row = (row_id: string) => ({ row_id, prompt: "p", columns: {} });
  const rows = ["a0", "a1", "a2", "b0", "b1"].map(row);
  const table = tableOf(rows, "d", [3, 2]);
  const drawn = async (sources: number[], before = [0, 0]) => {
    const draws = await drawMixed(table, { sources, drawn: before }, { seed: 5, from: 7 });
    deepStrictEqual(draws.map(({ draw }) => draw), sources.map((_, i) => 7 + i));
    return draws.map(({ row }) => row.row_id);
  };
  const mixed = await drawn([0, 1, 0, 0, 1, 0, 0, 0]);
  const [a, b] = ["a", "b"].map((name) => mixed.filter((id) => id.startsWith(name)));
  deepStrictEqual(a!.slice(0, 3).toSorted(), ["a0", "a1", "a2"]);
  deepStrictEqual(a!.slice(3).toSorted(), ["a0", "a1", "a2"]);
  deepStrictEqual(b!.toSorted(), ["b0", "b1"]);
  // How the others are mixed in between changes nothing, nor where a round begins.
  deepStrictEqual(await drawn([0, 0, 0, 0, 0, 0]), a);
  deepStrictEqual([...await drawn([0, 0]), ...await drawn([0, 0, 0, 0], [2, 0])], a);
});
