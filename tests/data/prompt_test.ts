import { deepStrictEqual } from "node:assert/strict";
import { Draw, Prompt, Row, Slab } from "../../data/mod.ts";

const row = { row_id: "r", prompt: "1+1", columns: { prompt: "1+1", extra: [null, { deep: 1 }] } };
const accepts = (value: unknown) => Prompt.safeParse(value).success;

Deno.test("Prompt is any text or at least one message of a role and a text", () => {
  const message = { role: "user", content: "" };
  const cases = ["", "a", [message], [], [{ role: "user" }], [{ ...message, name: "n" }], null];
  deepStrictEqual(cases.map(accepts), [true, true, true, false, false, false, false]);
});

Deno.test("Row keeps the original row as it was, whatever it holds", () => {
  deepStrictEqual(Row.parse(row), row);
  const { columns: _, ...without } = row;
  deepStrictEqual(Row.safeParse(without).error?.issues.map(({ path }) => path), [["columns"]]);
});

Deno.test("Row has a name, and its margin is a number", () => {
  const refused = (changes: object) =>
    Row.safeParse({ ...row, ...changes }).error?.issues.map(({ path }) => path.join("."));
  deepStrictEqual(refused({ row_id: "" }), ["row_id"]);
  deepStrictEqual(refused({ margin: "1" }), ["margin"]);
  deepStrictEqual(refused({ answer: 2 }), ["answer"], "rewards compare texts");
});

Deno.test("Draw names a place from 0 on, and cuts a prompt to at least one token", () => {
  const refused = (changes: object) =>
    Draw.safeParse({ draw: 0, row, ...changes }).error?.issues.map(({ path }) => path.join("."));
  deepStrictEqual(refused({}), undefined);
  deepStrictEqual(refused({ draw: -1 }), ["draw"]);
  deepStrictEqual(refused({ prompt_tokens_max: 0 }), ["prompt_tokens_max"]);
});

Deno.test("Slab has draws, in the order in which they are generated", () => {
  const draws = [{ draw: 5, row }, { draw: 3, row }];
  deepStrictEqual(Slab.parse({ id: "s", draws }).draws.map(({ draw }) => draw), [5, 3]);
  deepStrictEqual(Slab.safeParse({ id: "s", draws: [] }).success, false);
});
