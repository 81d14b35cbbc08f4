import { deepStrictEqual, notDeepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { digitsTables } from "../../data/mod.ts";

const rows = (table: { size: number; row(place: number): { row_id: string } }) =>
  Array.from({ length: table.size }, (_, i) => table.row(i).row_id);

Deno.test("digitsTables() splits all problems into training and evaluation, disjoint and complete", () => {
  const { train, eval: held } = digitsTables({
    name: "sort_digits",
    digits: 3,
    seed: 1,
    eval_problems: 64,
  });
  strictEqual(held.size, 64);
  strictEqual(new Set([...rows(train), ...rows(held)]).size, 1000);
});

Deno.test("digitsTables() states the task and its answer", () => {
  const split = { digits: 3, seed: 1, eval_problems: 1 };
  const sort = digitsTables({ ...split, name: "sort_digits" }).eval.row(0);
  const problem = String(sort.columns.problem);
  strictEqual(sort.prompt, `sort ${problem} =`);
  strictEqual(sort.answer, [...problem].sort().join(""));
  strictEqual(sort.completion, sort.answer);
  const reverse = digitsTables({ ...split, name: "reverse_digits" }).eval.row(0);
  strictEqual(reverse.answer, [...String(reverse.columns.problem)].reverse().join(""));
});

Deno.test("digitsTables() is the same for the same seed and another for another", () => {
  const held = (seed: number) =>
    rows(digitsTables({ name: "sort_digits", digits: 5, seed, eval_problems: 20 }).eval);
  deepStrictEqual(held(1), held(1));
  notDeepStrictEqual(held(1), held(2));
});

Deno.test("digitsTables() refuses to hold out everything", () => {
  throws(
    () => digitsTables({ name: "sort_digits", digits: 2, seed: 1, eval_problems: 100 }),
    /Cannot hold out 100 of 100/,
  );
});
