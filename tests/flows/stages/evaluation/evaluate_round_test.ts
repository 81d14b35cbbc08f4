import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { fakeBench } from "../alone.ts";
import {
  evaluationDue,
  evaluationNamed,
} from "../../../../flows/stages/evaluation/evaluate_round.ts";

Deno.test("evaluationDue() is every n-th round and the last", async () => {
  const bench = await fakeBench();
  const due: boolean[] = [];
  for (const round of [1, 2, 3, 4, 5]) {
    due.push(await bench.done(evaluationDue, { round, every_rounds: 2, last: 5 }));
  }
  deepStrictEqual(due, [false, true, false, true, true]);
  await Deno.remove(bench.dir, { recursive: true });
});

Deno.test("evaluationNamed() puts the round's number into a name", () => {
  const name = "math/round_{round}_greedy";
  strictEqual(evaluationNamed({ name, round: 12 }), "math/round_12_greedy");
  strictEqual(evaluationNamed({ name: "math/before_greedy" }), "math/before_greedy");
});
