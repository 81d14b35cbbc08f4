import { deepStrictEqual } from "node:assert/strict";
import { cutSlabs } from "../../rollouts/slabs.ts";

const draws = (numbers: number[]) =>
  numbers.map((draw) => ({ draw, row: { row_id: `r${draw}`, prompt: "p", columns: {} } }));
const cut = (numbers: number[], options: { slab_groups: number | null; samplers: number }) =>
  cutSlabs(draws(numbers), options).map(({ id, draws }) => [id, draws.map(({ draw }) => draw)]);

Deno.test("cutSlabs() divides a round by the configured samplers, in draw order", () => {
  deepStrictEqual(cut([7, 4, 5, 8, 6], { slab_groups: null, samplers: 2 }), [["4-6", [4, 5, 6]], [
    "7-8",
    [7, 8],
  ]]);
  deepStrictEqual(cut([1], { slab_groups: null, samplers: 4 }), [["1-1", [1]]]);
});

Deno.test("cutSlabs() cuts by slab_groups where it is set, whatever the samplers", () => {
  deepStrictEqual(cut([0, 1, 2], { slab_groups: 2, samplers: 9 }), [["0-1", [0, 1]], ["2-2", [2]]]);
});

Deno.test("cutSlabs() of no draws is no slab", () =>
  deepStrictEqual(cut([], { slab_groups: null, samplers: 2 }), []));
