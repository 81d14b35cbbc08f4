import { deepStrictEqual } from "node:assert/strict";
import { sourceOfRow } from "../../data/mod.ts";

Deno.test("sourceOfRow() is what stands before the first slash", () => {
  deepStrictEqual(["math/1", "math/a/b", "7", ""].map(sourceOfRow), ["math", "math", null, null]);
});
