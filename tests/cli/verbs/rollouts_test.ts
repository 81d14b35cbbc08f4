import { deepStrictEqual, throws } from "node:assert/strict";
import { placeOfRound } from "../../../cli/verbs/rollouts.ts";

Deno.test("placeOfRound() reads N and LOOP/N, and refuses the rest", () => {
  deepStrictEqual([placeOfRound("3"), placeOfRound("step/3")], [{ round: 3 }, {
    loop: "step",
    round: 3,
  }]);
  for (const text of ["0", "x", "/3", "3/", "-1", "1.5"]) {
    throws(() => placeOfRound(text), /--round/);
  }
});
