import { z } from "zod";
import { defineStage } from "../../engine/mod.ts";
import { ScoredGroup } from "./score_group.ts";

export const Evaluation = z.strictObject({
  name: z.string(),
  problems: z.int(),
  samples_per_problem: z.int(),
  failed: z.int().describe("Problems whose grader failed; they count in no mean."),
  mean_reward: z.number(),
  avg_at_k: z.number().describe("Share of samples that are right."),
  pass_at_1: z.number().describe("Unbiased estimate from all samples."),
  pass_at_k: z.number().describe("Share of problems with at least one right sample."),
  greedy: z.boolean().describe("Sampled at temperature 0: avg_at_k is the greedy accuracy."),
});
export type Evaluation = z.infer<typeof Evaluation>;

/**
 * Accuracy over an evaluation's groups. A sample is right if the reward named by `correct_by` gives it 1.
 * pass@k of one problem with c of n right: 1 - C(n-c, k) / C(n, k); Chen et al. 2021, arXiv:2107.03374, eq. 1.
 */
export const summariseEvaluation = defineStage({
  name: "summarise_evaluation",
  version: 1,
  input: z.strictObject({
    name: z.string(),
    scored: z.array(ScoredGroup),
    greedy: z.boolean(),
    correct_by: z.string().describe(
      "The reward, by its name in metrics, that says whether a sample is right: a score of 1.",
    ),
  }),
  output: Evaluation,
  run({ name, scored, greedy, correct_by }, ctx) {
    const alive = scored.filter((group) => group.failed === null && group.rewards.length > 0);
    const right = alive.map((group) => (group.parts[correct_by] ?? []).filter((score) => score >= 1).length);
    const k = Math.max(1, ...alive.map((group) => group.rewards.length));
    const mean = (
      values: number[],
    ) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : 0);
    const passAt = (tries: number) => mean(alive.map((group, i) => passAtK(group.rewards.length, right[i]!, tries)));
    const summary: Evaluation = {
      name,
      problems: scored.length,
      samples_per_problem: k,
      failed: scored.length - alive.length,
      mean_reward: mean(alive.map((group) => mean(group.rewards))),
      avg_at_k: mean(alive.map((group, i) => right[i]! / group.rewards.length)),
      pass_at_1: passAt(1),
      pass_at_k: passAt(k),
      greedy,
    };
    ctx.note("evaluation", name, summary);
    ctx.emit({
      metrics: { [`eval/${name}/avg_at_k`]: summary.avg_at_k, [`eval/${name}/pass_at_k`]: summary.pass_at_k },
    });
    return summary;
  },
});

/** Chance that at least one of `k` samples drawn from `n` is right, if `c` of the `n` are. */
export function passAtK(n: number, c: number, k: number): number {
  if (n - c < k) return 1;
  let none = 1;
  for (let i = n - c + 1; i <= n; i++) none *= 1 - k / i;
  return 1 - none;
}
