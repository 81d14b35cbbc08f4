import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { loopAndRound } from "../../../cli/display/loop_and_round.ts";

Deno.test("loopAndRound() reads N and LOOP/N, and nothing else", () => {
  deepStrictEqual([loopAndRound("0"), loopAndRound("step/3")], [{ round: 0 }, {
    loop: "step",
    round: 3,
  }]);
  for (const text of ["", "x", "/3", "3/", "a/b/3", "-1", "1.5", "3\n", "step/x"]) {
    strictEqual(loopAndRound(text), null);
  }
});
