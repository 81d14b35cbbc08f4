/** Running mean and deviation of scores. Nothing here has state. */
import { z } from "zod";

const /** @internal */ runningScoresSchema = z.strictObject({
  count: z.number().nonnegative().describe("How many scores, each by the weight that is left."),
  mean: z.number(),
  m2: z.number().nonnegative().describe("Sum of the squared distances from the mean."),
});
/** What is kept of all scores so far. */
export type RunningScores = z.infer<typeof runningScoresSchema>;
/** Schema of {@linkcode RunningScores}. */
export const RunningScores: typeof runningScoresSchema = runningScoresSchema;

/** Before the first score. */
export const NO_SCORES: RunningScores = { count: 0, mean: 0, m2: 0 };

/** Added to a standard deviation: equal scores stay equal, whatever their rounding. */
const EPSILON = 1e-8;

/**
 * The state with more scores, in their order. `memory`: what the earlier ones are multiplied by.
 * Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm".
 */
export function withScores(
  before: RunningScores,
  scores: readonly number[],
  { memory }: { memory: number },
): RunningScores {
  if (scores.length === 0) return before;
  const added = scores.length;
  const mean = scores.reduce((sum, score) => sum + score, 0) / added;
  const m2 = scores.reduce((sum, score) => sum + (score - mean) ** 2, 0);
  const kept = before.count * memory;
  const count = kept + added;
  const apart = mean - before.mean;
  return {
    count,
    mean: before.mean + apart * (added / count),
    m2: before.m2 * memory + m2 + apart ** 2 * (kept * added / count),
  };
}

/** The standard deviation of all scores so far. */
export function deviationOf({ count, m2 }: RunningScores): number {
  return count === 0 ? 0 : Math.sqrt(m2 / count);
}

/** A score by the running deviation, and, if it is centred, less the running mean. */
export function normalisedScore(
  score: number,
  state: RunningScores,
  { center }: { center: boolean },
): number {
  return (center ? score - state.mean : score) / (deviationOf(state) + EPSILON);
}
