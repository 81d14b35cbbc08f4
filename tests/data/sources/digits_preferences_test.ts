import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { digitsPreferenceTables, type RowTable } from "../../../data/mod.ts";

const all = (table: RowTable) =>
  table.rows(Array.from({ length: table.size }, (_, place) => place));
const tables = (seed: number) =>
  digitsPreferenceTables({ name: "sort_digits_preferences", digits: 3, seed, eval_problems: 100 });

Deno.test("digitsPreferenceTables(): the right answer is chosen, the other differs, and every mistake occurs", async () => {
  const { train, eval: held } = tables(1);
  const rows = [...await all(train), ...await all(held)];
  strictEqual(new Set(rows.map(({ row_id }) => row_id)).size, 1000);
  deepStrictEqual(rows.filter(({ completion, answer }) => completion !== answer), []);
  deepStrictEqual(rows.filter(({ rejected, answer }) => rejected === answer), []);
  const counts = Map.groupBy(rows, ({ columns }) => String(columns.mistake));
  deepStrictEqual([...counts.keys()].sort(), [
    "backwards",
    "copied",
    "long",
    "short",
    "swapped",
    "wrong_digit",
  ]);
  strictEqual([...counts.values()].every((some) => some.length > 80), true);
});

Deno.test("digitsPreferenceTables() is the same for the same seed, and another seed makes other mistakes", async () => {
  deepStrictEqual(await all(tables(1).eval), await all(tables(1).eval));
  const mistakes = async (seed: number) =>
    new Map((await all(tables(seed).train)).map((row) => [row.row_id, row.rejected]));
  const [one, other] = [await mistakes(1), await mistakes(2)];
  strictEqual([...one].some(([id, rejected]) => other.has(id) && other.get(id) !== rejected), true);
});
