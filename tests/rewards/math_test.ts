import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { functionOf, RewardConfig, rightness, rowCheck } from "../../rewards/mod.ts";
import { processOf, scoringFunctions } from "../../rewards/mod.ts";

const SOURCE = "holdfast_worker.rewards.graders.math_answer:grade";
const config = RewardConfig.parse({ name: "math", timeout_ms: 5, weight: 2 });

Deno.test("scoringFunctions() sends math to the reward processes, under its time limit", () => {
  const [math] = scoringFunctions([config]);
  deepStrictEqual(
    [math!.name, math!.runs_on, math!.source, math!.style, math!.timeout_ms, math!.weight],
    ["math", "process", SOURCE, "holdfast", 5, 2],
  );
  deepStrictEqual(math!.process, processOf({}));
  strictEqual(functionOf(config)!.source, SOURCE);
});

Deno.test("math needs a row's answer, and is right from a score of 1 on", () => {
  strictEqual(rowCheck(config)({ answer: "1", columns: {} }), null);
  match(rowCheck(config)({ columns: {} })!, /math because the row has no answer/);
  deepStrictEqual(rightness([config], null), { by: "math", at: 1, says: false });
});
