/** How the scores of a sample's rewards become its reward. */
import type { StopReason } from "../data/mod.ts";

/**
 * How one reward's score enters the sum.
 * @internal
 */
export interface Combined {
  /** The reward, as metrics name it. */
  readonly name: string;
  /** Factor of its score in the sum. */
  readonly weight: number;
  /**
   * Paid only to samples that the function of this name scores above 0; absent: to every sample.
   */
  readonly when?: string;
  /** The limits of its score in the sum; absent: none. */
  readonly clip?: readonly [number, number];
}

/**
 * What happens to the sum in training: a cut, then the cost of tokens, then limits.
 * @internal
 */
export interface Shaping {
  /** What a completion gets that the token limit cut, by one of these; absent: its reward. */
  readonly truncated?: { add?: number; set?: number; times?: number };
  /** Subtracted for each sampled token; absent: nothing. */
  readonly token_cost?: number;
  /** The limits of the result; absent: none. */
  readonly clip?: readonly [number, number];
}

/** What else decides about a sample's reward. */
export type Shaped = {
  stop: StopReason;
  /** Sampled tokens. */
  tokens: number;
  shaping?: Shaping;
  /** Changes the score of the reward of this name before it is clipped; absent: nothing does. */
  normalised?: (name: string, score: number) => number;
};

/** The score that each reward gave a sample; absent or null: it does not apply. */
type Scores = Readonly<Record<string, number | null>>;

/**
 * The sum of weight x score over the paid rewards that apply to a sample, shaped; null: none
 * applies. Scores are normalised, then clipped, then weighted; conditions read them as they are.
 */
export function combineScores(
  rewards: readonly Combined[],
  scores: Scores,
  sample: Shaped,
): number | null {
  const applicable = rewards.filter((reward) => applies(reward, rewards, scores));
  if (applicable.length === 0) return null;
  const { normalised = (_, score) => score } = sample;
  const sum = applicable.filter(({ when }) => when === undefined || scores[when]! > 0)
    .reduce(
      (sum, { name, weight, clip }) =>
        sum + weight * clipped(normalised(name, scores[name]!), clip),
      0,
    );
  const { stop, tokens, shaping: { truncated, token_cost = 0, clip } = {} } = sample;
  const { set, add = 0, times = 1 } = stop === "length" && truncated || {};
  return clipped((set ?? sum * times + add) - token_cost * tokens, clip);
}

/**
 * What each token earns: the sum of weight x score over the paid rewards that score tokens; null:
 * none does.
 */
export function combineTokens(
  rewards: readonly Combined[],
  scores: Scores,
  tokens: Readonly<Record<string, readonly number[]>>,
): number[] | null {
  const tokenRewards = rewards.filter((reward) =>
    tokens[reward.name] !== undefined && applies(reward, rewards, scores) &&
    (reward.when === undefined || scores[reward.when]! > 0)
  );
  if (tokenRewards.length === 0) return null;
  return tokens[tokenRewards[0]!.name]!.map((_, t) =>
    tokenRewards.reduce((sum, { name, weight }) => sum + weight * tokens[name]![t]!, 0)
  );
}

/** Whether a reward has a score for the sample, and, if it is conditional, its condition too. */
function applies(reward: Combined, rewards: readonly Combined[], scores: Scores): boolean {
  if ((scores[reward.name] ?? null) === null) return false;
  const condition = rewards.find(({ name }) => name === reward.when);
  return condition === undefined || applies(condition, rewards, scores);
}

function clipped(value: number, clip: readonly [number, number] | undefined): number {
  return clip === undefined ? value : Math.min(Math.max(value, clip[0]), clip[1]);
}
