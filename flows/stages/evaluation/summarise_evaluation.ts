import { z } from "zod";
import { ArtifactRef } from "../../../data/mod.ts";
import {
  BadDataError,
  defineStage,
  type RecordingContext,
  type Stage,
} from "../../../engine/mod.ts";
import { answerReader, RewardConfig } from "../../../rewards/mod.ts";
import { UNGRADED } from "../../../rollouts/mod.ts";
import {
  bootstrapIntervals,
  majorityRight,
  mean,
  passAtK,
  passColumns,
  passHatK,
  type Vote,
} from "../../evaluation_statistics.ts";
import { decodedSlab } from "../decoded_slabs.ts";
import { evaluationNamed } from "./evaluate_round.ts";
import { sampledBy, ScoredGroup } from "../score_group.ts";

const /** @internal */ evaluationSchema = z.strictObject({
  name: z.string(),
  problems: z.int(),
  samples_per_problem: z.int(),
  graded: z.int().describe("Samples with a score."),
  right: z.int().nullable().describe("Right samples; null: no reward defines right."),
  undecided: z.int().optional().describe(
    "Graded samples to which the reward that defines right does not apply; absent: none.",
  ),
  failed: z.int().describe("Samples whose grader failed; excluded from every mean."),
  ungraded: z.int().describe("Samples that nothing can grade; excluded from every mean."),
  failures: z.record(z.string(), z.int()).describe("Failed and ungraded samples, by reason."),
  mean_reward: z.number().describe("Mean over problems of the mean over their graded samples."),
  avg_at_k: z.number().nullable().describe(
    "Mean over problems of the share of graded samples that are right.",
  ),
  pass_at_1: z.number().nullable().describe("Unbiased estimate from all samples."),
  pass_at_k: z.number().nullable().describe("Share of problems with at least one right sample."),
  pass_at: z.array(z.number()).nullable().describe(
    "pass@k for k = 1, 2, ..., each over the problems with at least k graded samples.",
  ),
  pass_hat: z.array(z.number()).nullable().optional().describe(
    "pass^k for k = 1, 2, ..., over the same problems. Absent: one sample per problem.",
  ),
  maj_at_k: z.number().nullable().optional().describe(
    "Share of problems whose most common answer is right, ties by lot; null: no reward reads " +
      "answers. Absent: one sample per problem.",
  ),
  intervals: z.record(z.string(), z.tuple([z.number(), z.number()])).optional().describe(
    "95 % interval of mean_reward, avg_at_k, maj_at_k, each pass_at_N and pass_hat_N: " +
      "bootstrap over problems. Absent: fewer than two problems.",
  ),
  by_problem: ArtifactRef.describe("JSON: ProblemResult of each problem."),
  greedy: z.boolean().describe("Sampled at temperature 0: avg_at_k is the greedy accuracy."),
});
/** What an evaluation found. */
export type Evaluation = z.infer<typeof evaluationSchema>;
/** Schema of {@linkcode Evaluation}. */
export const Evaluation: typeof evaluationSchema = evaluationSchema;

const /** @internal */ problemResultSchema = z.strictObject({
  row_id: z.string(),
  graded: z.int().describe("Samples with a score."),
  mean_reward: z.number().nullable().describe("Of the graded samples; null: there are none."),
  decided: z.int().describe("Samples that are right or wrong."),
  right: z.int(),
  majority: z.number().nullable().describe(
    "Chance that the most common answer is right; null: no vote.",
  ),
});
/** What an evaluation found about one problem: two evaluations are compared by it. */
export type ProblemResult = z.infer<typeof problemResultSchema>;
/** Schema of {@linkcode ProblemResult}. */
export const ProblemResult: typeof problemResultSchema = problemResultSchema;

const Input = z.strictObject({
  name: z.string().describe("`{round}` in it stands for the round's number."),
  round: z.int().positive().optional(),
  metrics_under: z.string().optional().describe("Prefix of its metrics. Absent: eval/NAME."),
  scored: z.array(ScoredGroup),
  greedy: z.boolean(),
  correct_by: z.string().nullable().describe(
    "Name, as in metrics, of the reward that defines right; null: none.",
  ),
  right_at: z.number().describe("Its score from which a sample counts as right."),
  says_right: z.boolean().describe("If it returns `right` with its score, that decides instead."),
  failed_fraction_max: z.number().describe("Fails if more than this share of samples failed."),
  answers_by: RewardConfig.optional().describe(
    "The reward that reads the answers for a majority. Absent: none.",
  ),
});
/** @internal */
type Input = z.infer<typeof Input>;

/**
 * Accuracy and mean reward over an evaluation's groups. Failed and ungraded samples are counted
 * separately and excluded from every mean.
 */
export const summariseEvaluation: Stage<z.input<typeof Input>, Evaluation> = defineStage({
  name: "summarise_evaluation",
  version: 1,
  input: Input,
  output: Evaluation,
  async run(input, ctx: RecordingContext) {
    const { scored, greedy } = input;
    const name = evaluationNamed(input);
    const { samplesPerProblem: samplesPerProblem, failed, ungraded, failures } = counted(scored);
    checkGraded(input, { samples: samplesPerProblem * scored.length, failed });
    const problems = await problemResults(input, ctx);
    const sum = (of: (one: ProblemResult) => number) =>
      problems.reduce((total, one) => total + of(one), 0);
    const graded = sum((one) => one.graded);
    const decided = sum((one) => one.decided);
    const has_right = input.correct_by !== null && (decided > 0 || graded === 0);
    const undecided = has_right ? graded - decided : 0;
    const columns = has_right ? columnsOf(problems, samplesPerProblem) : rewardColumn(problems);
    const means = Object.fromEntries(
      Object.entries(columns).map(([of, values]) => [of, mean(values.filter(isKnown))]),
    );
    const upToK = (prefix: string) =>
      has_right
        ? Object.entries(means).filter(([of]) => of.startsWith(prefix)).map(([, value]) => value)
        : null;
    const pass_at = upToK(PASS_AT);
    const intervals = bootstrapIntervals(columns, ctx.random("bootstrap"));
    const summary: Evaluation = {
      name,
      problems: scored.length,
      samples_per_problem: samplesPerProblem,
      graded,
      right: has_right ? sum((one) => one.right) : null,
      undecided: undecided > 0 ? undecided : undefined,
      failed,
      ungraded,
      failures,
      mean_reward: means.mean_reward!,
      avg_at_k: means.avg_at_k ?? null,
      pass_at_1: pass_at && pass_at[0]!,
      pass_at_k: pass_at && pass_at.at(-1)!,
      pass_at,
      pass_hat: samplesPerProblem > 1 ? upToK(PASS_HAT) : undefined,
      maj_at_k: samplesPerProblem > 1 ? means.maj_at_k ?? null : undefined,
      greedy,
      intervals: Object.keys(intervals).length > 0 ? intervals : undefined,
      by_problem: await ctx.artifacts.putJson(problems),
    };
    ctx.note("evaluation", name, summary);
    const metrics = metricsOf(summary, input.metrics_under ?? `eval/${name}`);
    ctx.emit({ metrics, version: sampledBy(scored) });
    return summary;
  },
});

/** What is known of each problem, in the order of the rows. */
async function problemResults(
  input: Input,
  { artifacts }: Pick<RecordingContext, "artifacts">,
): Promise<ProblemResult[]> {
  const reader = input.answers_by === undefined ? null : answerReader(input.answers_by);
  const results: ProblemResult[] = [];
  for (const one of input.scored) {
    const { row_id, trajectories } = (await decodedSlab(one.group.slab, artifacts))
      .groups[one.group.index]!;
    const right = input.correct_by === null ? [] : rightOf(one, input);
    const decided = right.filter((verdict) => verdict !== null);
    const votes = reader === null ? [] : one.group.samples.flatMap((sample, i): Vote[] => {
      const answer = reader(trajectories[sample]!.text);
      return right[i] === null ? [] : [{ answer, right: right[i]! }];
    });
    results.push({
      row_id,
      graded: one.rewards.length,
      mean_reward: one.rewards.length === 0 ? null : mean(one.rewards),
      decided: decided.length,
      right: decided.filter((verdict) => verdict).length,
      majority: votes.length > 0 ? majorityRight(votes) : null,
    });
  }
  return results;
}

/** Of the names of pass@k and pass^k. */
const [PASS_AT, PASS_HAT] = ["pass_at_", "pass_hat_"];

type Columns = Record<string, (number | null)[]>;

function rewardColumn(problems: ProblemResult[]): Columns {
  return { mean_reward: problems.map((one) => one.mean_reward) };
}

/** What is averaged over the problems: [name][problem]. */
function columnsOf(problems: ProblemResult[], samplesPerProblem: number): Columns {
  const counts = problems.map(({ decided: n, right: c }) => ({ n, c }));
  const passes = numbered(PASS_AT, passColumns(counts, passAtK));
  const hats = samplesPerProblem > 1 ? numbered(PASS_HAT, passColumns(counts, passHatK)) : [];
  const majority = problems.map((one) => one.majority);
  return {
    ...rewardColumn(problems),
    avg_at_k: counts.map(({ n, c }) => n === 0 ? null : c / n),
    ...(majority.some(isKnown) && { maj_at_k: majority }),
    ...Object.fromEntries([...passes, ...hats]),
  };
}

/** Values for k = 1, 2, ..., each under its name. */
function numbered<T>(prefix: string, values: readonly T[]): [string, T][] {
  return values.map((value, i) => [`${prefix}${i + 1}`, value]);
}

function isKnown(value: number | null): value is number {
  return value !== null;
}

/** The requested samples of each problem, and why some have no score. */
function counted(scored: ScoredGroup[]) {
  const missing = ({ failures = {} }: ScoredGroup) =>
    Object.values(failures).reduce((sum, n) => sum + n, 0);
  const samplesPerProblem = Math.max(
    1,
    ...scored.map((group) => group.rewards.length + missing(group)),
  );
  const failures: Record<string, number> = {};
  for (const group of scored) {
    for (const [reason, n] of Object.entries(group.failures ?? {})) {
      failures[reason] = (failures[reason] ?? 0) + n;
    }
  }
  const ungraded = failures[UNGRADED] ?? 0;
  return {
    samplesPerProblem: samplesPerProblem,
    failed: Object.values(failures).reduce((sum, n) => sum + n, 0) - ungraded,
    ungraded,
    failures,
  };
}

/** @throws {BadDataError} If too many samples failed, or none has a score. */
function checkGraded(
  { scored, failed_fraction_max, ...input }: Input,
  counts: { samples: number; failed: number },
): void {
  const { samples, failed } = counts;
  const none = scored.length > 0 && scored.every((group) => group.rewards.length === 0);
  if (!none && failed <= failed_fraction_max * samples) return;
  const name = evaluationNamed(input);
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

/** Whether each scored sample is right; null: the deciding reward does not apply to it. */
function rightOf(
  { rewards, parts }: ScoredGroup,
  { correct_by, right_at, says_right }: Input,
): (boolean | null)[] {
  const verdicts = says_right ? parts[`${correct_by}/right`] : undefined;
  const values = verdicts ?? parts[correct_by!] ?? rewards.map(() => 0);
  return values.map((one) => one === null ? null : one >= (verdicts ? 0.5 : right_at));
}

/** Means whose intervals are metrics too: a line for every pass@k has no reader. */
const WITH_BOUNDS = ["mean_reward", "avg_at_k", "maj_at_k"];

function metricsOf(
  { graded, right, failed, ungraded, intervals = {}, ...summary }: Evaluation,
  under: string,
): Record<string, number> {
  const { avg_at_k, maj_at_k = null, pass_at, pass_hat, mean_reward, samples_per_problem } =
    summary;
  // Of one sample, pass^1 is pass@1.
  const passes = [
    ...numbered(PASS_AT, pass_at ?? []),
    ...numbered(PASS_HAT, pass_hat ?? []).slice(1),
  ];
  const spelled = (of: string) => of.replace(/_k$/, `_${samples_per_problem}`);
  const bounds = WITH_BOUNDS.filter((of) => of in intervals).flatMap((of): [string, number][] => [
    [`${spelled(of)}_low`, intervals[of]![0]],
    [`${spelled(of)}_high`, intervals[of]![1]],
  ]);
  const metrics = {
    graded,
    failed,
    ungraded,
    mean_reward,
    right,
    [spelled("avg_at_k")]: avg_at_k,
    [spelled("maj_at_k")]: maj_at_k,
    ...Object.fromEntries([...passes, ...bounds]),
  };
  return Object.fromEntries(
    Object.entries(metrics).flatMap(([metric, value]) =>
      value === null ? [] : [[`${under}/${metric}`, value]]
    ),
  );
}
