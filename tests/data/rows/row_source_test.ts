import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { isFromSources } from "../../../data/mod.ts";

Deno.test("a row is from the source that its id names before the first slash", () => {
  const from = (row_id: string) => isFromSources(row_id, ["math", "code"]);
  deepStrictEqual(["math/1", "code/a/b", "maths/1", "math", "7", "/math/1"].map(from), [
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
  strictEqual(isFromSources("7", undefined), true);
});
