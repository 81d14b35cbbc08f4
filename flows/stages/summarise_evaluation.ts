import { z } from "zod";
import { BadDataError, defineStage, type RecordingContext, type Stage } from "../../engine/mod.ts";
import { UNGRADED } from "../../rollouts/mod.ts";
import { sampledBy, ScoredGroup } from "./score_group.ts";

const later = "Absent in older records.";

const /** @internal */ evaluationSchema = z.strictObject({
  name: z.string(),
  problems: z.int(),
  samples_per_problem: z.int(),
  graded: z.int().optional().describe(`Samples with a score. ${later}`),
  right: z.int().nullable().optional().describe(
    `Right samples; null: no reward defines right. ${later}`,
  ),
  failed: z.int().describe("Samples whose grader failed; excluded from every mean."),
  ungraded: z.int().optional().describe(
    `Samples that nothing can grade; excluded from every mean. ${later}`,
  ),
  failures: z.record(z.string(), z.int()).optional().describe(
    `Failed and ungraded samples, by reason. ${later}`,
  ),
  mean_reward: z.number().describe("Mean over problems of the mean over their graded samples."),
  avg_at_k: z.number().nullable().describe(
    "Mean over problems of the share of graded samples that are right.",
  ),
  pass_at_1: z.number().nullable().describe("Unbiased estimate from all samples."),
  pass_at_k: z.number().nullable().describe("Share of problems with at least one right sample."),
  pass_at: z.array(z.number()).nullable().optional().describe(
    `pass@k for k = 1, 2, ..., each over the problems with as many graded samples. ${later}`,
  ),
  greedy: z.boolean().describe("Sampled at temperature 0: avg_at_k is the greedy accuracy."),
});
/** What an evaluation found. */
export type Evaluation = z.infer<typeof evaluationSchema>;
/** Schema of {@linkcode Evaluation}. */
export const Evaluation: typeof evaluationSchema = evaluationSchema;

const Input = z.strictObject({
  name: z.string(),
  scored: z.array(ScoredGroup),
  greedy: z.boolean(),
  correct_by: z.string().nullable().describe(
    "Name, as in metrics, of the reward that defines right; null: none.",
  ),
  right_at: z.number().optional().describe(
    "Its score from which a sample counts as right. Absent: 1.",
  ),
  says_right: z.literal(true).optional().describe(
    "What it returns as `right` beside its score comes first.",
  ),
  failed_fraction_max: z.number().optional().describe(
    "Fails if more than this share of samples failed. Absent: 1.",
  ),
});
/** @internal */
type Input = z.infer<typeof Input>;

/**
 * Accuracy and mean reward over an evaluation's groups. Failed and ungraded samples are counted
 * separately and excluded from every mean. pass@k of one problem with c of n right: 1 - C(n-c, k) /
 * C(n, k); Chen et al. 2021, arXiv:2107.03374, eq. 1.
 */
export const summariseEvaluation: Stage<Input, Evaluation> = defineStage({
  name: "summarise_evaluation",
  version: 1,
  input: Input,
  output: Evaluation,
  run(input, ctx: RecordingContext) {
    const { name, scored, greedy } = input;
    const { asked, failed, ungraded, failures } = counted(scored);
    checkGraded(input, { samples: asked * scored.length, failed });
    const graded = scored.filter((group) => group.rewards.length > 0);
    const right = input.correct_by === null ? null : graded.map((group) => rightOf(group, input));
    const pass_at = right &&
      passAtAll(graded.map((group, i) => ({ n: group.rewards.length, c: right[i]! })));
    const summary: Evaluation = {
      name,
      problems: scored.length,
      samples_per_problem: asked,
      graded: graded.reduce((sum, group) => sum + group.rewards.length, 0),
      right: right && right.reduce((sum, n) => sum + n, 0),
      failed,
      ungraded,
      failures,
      mean_reward: mean(graded.map((group) => mean(group.rewards))),
      avg_at_k: right && mean(graded.map((group, i) => right[i]! / group.rewards.length)),
      pass_at_1: pass_at && pass_at[0]!,
      pass_at_k: pass_at && pass_at.at(-1)!,
      pass_at,
      greedy,
    };
    ctx.note("evaluation", name, summary);
    ctx.emit({ metrics: metricsOf(summary), version: sampledBy(scored) });
    return summary;
  },
});

function mean(values: number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Samples that were asked for of each problem, and why some have no score. */
function counted(scored: ScoredGroup[]) {
  const missing = ({ failures = {} }: ScoredGroup) =>
    Object.values(failures).reduce((sum, n) => sum + n, 0);
  const asked = Math.max(1, ...scored.map((group) => group.rewards.length + missing(group)));
  const failures: Record<string, number> = {};
  for (const group of scored) {
    // An older record says why the group failed, not how many of its samples.
    const older = group.failed === null ? {} : { [group.failed]: asked - group.rewards.length };
    for (const [reason, n] of Object.entries(group.failures ?? older)) {
      failures[reason] = (failures[reason] ?? 0) + n;
    }
  }
  const ungraded = failures[UNGRADED] ?? 0;
  return {
    asked,
    failed: Object.values(failures).reduce((sum, n) => sum + n, 0) - ungraded,
    ungraded,
    failures,
  };
}

/** @throws {BadDataError} If too many samples failed, or none has a score. */
function checkGraded(
  { name, scored, failed_fraction_max = 1 }: Input,
  counts: { samples: number; failed: number },
): void {
  const { samples, failed } = counts;
  const none = scored.length > 0 && scored.every((group) => group.rewards.length === 0);
  if (!none && failed <= failed_fraction_max * samples) return;
  const first = scored.find((group) => group.failed !== null || group.failures !== undefined);
  const why = none && failed === 0
    ? `none of its ${samples} samples can be graded`
    : `the grader failed on ${failed} of ${samples} samples, more than ` +
      "evaluate.failed_fraction_max allows";
  throw new BadDataError(
    `Cannot report the evaluation '${name}' because ${why}: ${first?.id ?? "no group"}: ${
      first?.detail ?? "no detail"
    }. ` +
      "Fix: repair the grader, then resume; or repair the rows, and evaluate again in a new run",
    { name, samples, failed },
  );
}

function rightOf(
  { rewards, parts }: ScoredGroup,
  { correct_by, right_at = 1, says_right }: Input,
): number {
  const said = says_right ? parts[`${correct_by}/right`] : undefined;
  if (said) return said.filter((value) => value >= 0.5).length;
  return (parts[correct_by!] ?? rewards.map(() => 0)).filter((score) => score >= right_at).length;
}

/** pass@k for every k that some problem has enough samples for. */
function passAtAll(problems: { n: number; c: number }[]): number[] {
  const most = Math.max(0, ...problems.map(({ n }) => n));
  return Array.from({ length: most }, (_, i) => {
    const enough = problems.filter(({ n }) => n > i);
    return mean(enough.map(({ n, c }) => passAtK(n, c, i + 1)));
  });
}

function metricsOf(
  { name, graded, right, failed, ungraded, ...summary }: Evaluation,
): Record<string, number> {
  const { avg_at_k, pass_at, mean_reward, samples_per_problem } = summary;
  const passes = (pass_at ?? []).map((value, i): [string, number] => [`pass_at_${i + 1}`, value]);
  const told = {
    graded: graded!,
    failed,
    ungraded: ungraded!,
    mean_reward,
    ...(right !== null && { right: right! }),
    ...(avg_at_k !== null && { [`avg_at_${samples_per_problem}`]: avg_at_k }),
    ...Object.fromEntries(passes),
  };
  return Object.fromEntries(
    Object.entries(told).map(([metric, value]) => [`eval/${name}/${metric}`, value]),
  );
}

/** Chance that at least one of `k` samples drawn from `n` is right, if `c` of the `n` are. */
export function passAtK(n: number, c: number, k: number): number {
  if (n - c < k) return 1;
  let none = 1;
  for (let i = n - c + 1; i <= n; i++) none *= 1 - k / i;
  return 1 - none;
}
