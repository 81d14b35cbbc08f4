/** With evaluations: `stop_early_test.ts`. */
import { deepStrictEqual } from "node:assert/strict";
import { StopConfig } from "../../configs/mod.ts";
import { judgeProgress } from "../../flows/stages/judge_progress.ts";
import { fakeBench } from "./alone.ts";

Deno.test("judgeProgress() never ends a run in a round without an evaluation", async () => {
  const bench = await fakeBench();
  const progress = { best: 1, round: 1 };
  const input = {
    policy: await bench.start(),
    round: 8,
    rounds: 9,
    stop: StopConfig.parse({ metric: "eval/pass@1", patience_rounds: 1 }),
    progress,
  };
  deepStrictEqual(await bench.done(judgeProgress, input), { progress, done: false, last: 9 });
  await Deno.remove(bench.dir, { recursive: true });
});
