/** What a task's two runs learned, read off their `metrics.jsonl`. */

/**
 * Held-out accuracy after a round of GRPO, with its 95 % interval, and the mean reward of the same
 * samples; round 0 is before the first.
 */
export type Accuracy = { round: number; right: number; low: number; high: number; reward: number };

/** Mean of a twentieth of the rounds, and the last of them. */
type Part = { round: number; mean: number };

export type LearnedTask = {
  /** Loss of the supervised rounds. */
  losses: Part[];
  /** By evaluation: `SET` samples as in training, `SET/greedy` takes the likeliest token. */
  evaluations: Record<string, Accuracy[]>;
  /** Of a mixture: each source's share of the draws in the first and in the last round of GRPO. */
  shares: Record<string, { first: number; last: number }>;
  /** Reward of the rounds of GRPO. */
  rewards: Part[];
  /** Of a reward that is a sum: each of its rewards alone, before its weight. */
  rewards_by_name: Record<string, Part[]>;
};

type Point = { round: number | null; metrics: Record<string, number> };

const PARTS = 20;

/** `taught`, `learned`: contents of the `metrics.jsonl` of the supervised run and of GRPO. */
export function learnedTask(files: { taught: string; learned: string }): LearnedTask {
  const learned = pointsOf(files.learned);
  return {
    losses: parts(valuesOf(pointsOf(files.taught), "policy/loss")),
    evaluations: Object.fromEntries(
      names(learned, /^eval\/(.+\/avg_at_\d+)$/).map((measure) => [
        measure.replace(/\/[^/]+$/, ""),
        accuracies(learned, measure),
      ]),
    ),
    shares: Object.fromEntries(
      names(learned, /^data\/([^/]+)\/share$/).map((source) => {
        const values = valuesOf(learned, `data/${source}/share`);
        return [source, { first: values[0]!.value, last: values.at(-1)!.value }];
      }),
    ),
    rewards: parts(valuesOf(learned, "reward/mean")),
    rewards_by_name: Object.fromEntries(
      names(learned, /^reward\/([^/]+)\/mean$/).map((name) => [
        name,
        parts(valuesOf(learned, `reward/${name}/mean`)),
      ]),
    ),
  };
}

function pointsOf(file: string): Point[] {
  return file.trimEnd().split("\n").map((line) => JSON.parse(line) as Point);
}

function names(points: readonly Point[], metric: RegExp): string[] {
  const found = points.flatMap(({ metrics }) =>
    Object.keys(metrics).flatMap((name) => metric.exec(name)?.[1] ?? [])
  );
  return [...new Set(found)];
}

/** In the order of the rounds; what was measured outside them counts as round 0. */
function valuesOf(points: readonly Point[], metric: string): { round: number; value: number }[] {
  return points.filter(({ metrics }) => metrics[metric] !== undefined)
    .map(({ round, metrics }) => ({ round: round ?? 0, value: metrics[metric]! }))
    .sort((a, b) => a.round - b.round);
}

function accuracies(points: readonly Point[], measure: string): Accuracy[] {
  const [rights, lows, highs, rewards] = [
    measure,
    `${measure}_low`,
    `${measure}_high`,
    measure.replace(/[^/]+$/, "mean_reward"),
  ].map((metric) => valuesOf(points, `eval/${metric}`));
  return rights!.map(({ round, value }, i) => ({
    round,
    right: value,
    low: lows![i]!.value,
    high: highs![i]!.value,
    reward: rewards![i]!.value,
  }));
}

function parts(values: readonly { round: number; value: number }[]): Part[] {
  const size = Math.max(1, Math.ceil(values.length / PARTS));
  return Array.from({ length: Math.ceil(values.length / size) }, (_, i) => {
    const part = values.slice(i * size, (i + 1) * size);
    const sum = part.reduce((total, { value }) => total + value, 0);
    return { round: part.at(-1)!.round, mean: sum / part.length };
  });
}
