import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { exactMatch } from "../../rewards/mod.ts";

Deno.test("exactMatch.score() compares whole texts as configured", () => {
  const score = (completion: string, options = {}) =>
    exactMatch.score({ completion, row: { answer: "Ab" } }, exactMatch.config.parse(options));
  deepStrictEqual([score(" Ab\n"), score("ab"), score("Abc")], [1, 0, 0]);
  deepStrictEqual([score(" Ab", { trim: false }), score("aB", { ignore_case: true })], [0, 1]);
  strictEqual(
    exactMatch.score({ completion: "x", row: {} }, { trim: true, ignore_case: false }),
    null,
  );
});
