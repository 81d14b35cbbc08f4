import { deepStrictEqual, notDeepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { digitsTables, type RowTable } from "../../../data/mod.ts";

const rows = async (table: RowTable) =>
  (await table.rows(Array.from({ length: table.size }, (_, i) => i))).map(({ row_id }) => row_id);

Deno.test("digitsTables() splits all problems, disjoint and complete", async () => {
  const { train, eval: held } = digitsTables({
    name: "sort_digits",
    digits: 3,
    seed: 1,
    eval_problems: 64,
  });
  strictEqual(held.size, 64);
  strictEqual(new Set([...await rows(train), ...await rows(held)]).size, 1000);
});

Deno.test("digitsTables() states the task and its answer", async () => {
  const split = { digits: 3, seed: 1, eval_problems: 1 };
  const [sort] = await digitsTables({ ...split, name: "sort_digits" }).eval.rows([0]);
  const problem = String(sort!.columns.problem);
  strictEqual(sort!.prompt, `sort ${problem} =`);
  strictEqual(sort!.answer, [...problem].sort().join(""));
  strictEqual(sort!.completion, sort!.answer);
  const [reverse] = await digitsTables({ ...split, name: "reverse_digits" }).eval.rows([0]);
  strictEqual(reverse!.answer, [...String(reverse!.columns.problem)].reverse().join(""));
});

Deno.test("digitsTables() is the same for the same seed and another for another", async () => {
  const held = (seed: number) =>
    rows(digitsTables({ name: "sort_digits", digits: 5, seed, eval_problems: 20 }).eval);
  deepStrictEqual(await held(1), await held(1));
  notDeepStrictEqual(await held(1), await held(2));
});

Deno.test("digitsTables() refuses to hold out everything", () => {
  throws(
    () => digitsTables({ name: "sort_digits", digits: 2, seed: 1, eval_problems: 100 }),
    /Cannot hold out 100 of 100/,
  );
});
