import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { parsePythonReward } from "../../rewards/mod.ts";

Deno.test("parsePythonReward() splits path.py:function and refuses the rest", () => {
  deepStrictEqual(parsePythonReward("a/b.py:f"), { path: "a/b.py", function: "f" });
  for (const text of ["gsm8k", "a.py", "a.py:", "a.txt:f", "a.py:f g"]) {
    strictEqual(parsePythonReward(text), null);
  }
});
