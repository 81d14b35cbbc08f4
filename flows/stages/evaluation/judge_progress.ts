import { z } from "zod";
import { metricName, StopConfig } from "../../../configs/mod.ts";
import { Policy } from "../../../data/mod.ts";
import { defineStage, type RecordingContext, type Stage } from "../../../engine/mod.ts";
import { roundMetricsSoFar, valueOf } from "../round_metrics.ts";

const /** @internal */ progressSchema = z.strictObject({
  best: z.number().nullable().describe("The best value so far; null: none yet."),
  round: z.int().nonnegative().describe("The round that reached it; 0: none."),
  by: z.string().nullable().describe("The metric and its direction; null: nothing was measured."),
});
/** How far a run has come by the metric that ends it. */
export type Progress = z.infer<typeof progressSchema>;
/** Schema of {@linkcode Progress}. */
export const Progress: typeof progressSchema = progressSchema;

const Input = z.strictObject({
  policy: Policy.describe("Evaluated: it orders this stage after the round's evaluation."),
  round: z.int().positive(),
  rounds: z.int().positive().describe("The loop's last round if nothing ends it earlier."),
  stop: StopConfig,
  progress: Progress,
});
/** @internal */
type Input = z.input<typeof Input>;
const Output = z.strictObject({
  progress: Progress,
  done: z.boolean(),
  last: z.int().positive().describe("The loop's last round, as far as is known."),
});
type Output = z.infer<typeof Output>;

/** The progress so far; none if a fork has changed what it is measured by. */
export function progressOf(before: Progress, { mode, metric }: StopConfig): Progress {
  const by = `${mode} ${metricName(metric)}`;
  return before.by === by ? before : { best: null, round: 0, by };
}

/**
 * Whether training ends with this round: its metric was measured, and the best value is
 * `patience_rounds` old. A round without an evaluation changes nothing. Only reads: safe to run
 * twice.
 */
export const judgeProgress: Stage<Input, Output> = defineStage({
  name: "judge_progress",
  version: 1,
  input: Input,
  output: Output,
  async run({ round, rounds, stop, progress }, ctx: RecordingContext) {
    const before = progressOf(progress, stop);
    const value = valueOf(await roundMetricsSoFar(ctx), stop.metric);
    if (value === null) return { progress: before, done: false, last: rounds };
    const sign = stop.mode === "max" ? 1 : -1;
    const better = before.best === null || sign * (value - before.best) > stop.min_delta;
    const now = better ? { ...before, best: value, round } : before;
    const done = round - now.round >= stop.patience_rounds;
    if (done && round < rounds) {
      ctx.emit({
        log: `training stops after round ${round}: ${stop.metric} was best in round ` +
          `${now.round} (${now.best}) and is ${value} now`,
      });
    }
    return { progress: now, done, last: done ? round : rounds };
  },
});
