/** With evaluations: `stop_early_test.ts`. */
import { deepStrictEqual } from "node:assert/strict";
import { StopConfig } from "../../../../configs/mod.ts";
import { judgeProgress, progressOf } from "../../../../flows/stages/evaluation/judge_progress.ts";
import { fakeBench } from "../alone.ts";

Deno.test("judgeProgress() never ends a run in a round without an evaluation", async () => {
  const bench = await fakeBench();
  const progress = { best: 1, round: 1, by: "max eval/pass_at_1" };
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

Deno.test("progressOf() starts again if a fork has changed the metric or its direction", () => {
  const stop = StopConfig.parse({ metric: "eval/pass@1", patience_rounds: 2 });
  const before = { best: 0.5, round: 4, by: "max eval/pass_at_1" };
  deepStrictEqual(progressOf(before, stop), before);
  deepStrictEqual(progressOf({ best: null, round: 0, by: null }, stop), {
    ...before,
    best: null,
    round: 0,
  });
  deepStrictEqual(progressOf(before, { ...stop, min_delta: 1, patience_rounds: 9 }), before);
  const anew = (by: string) => ({ best: null, round: 0, by });
  deepStrictEqual(progressOf(before, { ...stop, mode: "min" }), anew("min eval/pass_at_1"));
  deepStrictEqual(
    progressOf(before, { ...stop, metric: "eval/loss" }),
    anew("max eval/loss"),
  );
});
