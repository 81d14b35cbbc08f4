/**
 * Which samples of an evaluation are right: a reward says so itself, or its score is high enough.
 */
import { labelOf, type RewardConfig } from "./entries/config.ts";
import { REWARDS } from "./table.ts";

/** The number, returned with a score, that says whether the sample is right. */
const RIGHT = "/right";
/** From this on a reward that says what is right means it, in its score too. */
const RIGHT_SCORE_MIN = 0.5;

/**
 * `by`: the reward that defines right, by its name in metrics; null: none does. `says`: the `right`
 * that it returns takes precedence.
 */
type Rightness = { by: string | null; at: number; says: boolean };

/** The reward of this name in metrics. */
export function rewardCalled(
  rewards: readonly RewardConfig[],
  name: string | null,
): RewardConfig | undefined {
  return rewards.find((reward) => labelOf(reward) === name);
}

/**
 * How these rewards define right. `right_at`: a score for the first reward; null: the first reward
 * that declares one decides, by that score or by the `right` that a function returns beside its
 * score.
 */
export function rightness(rewards: readonly RewardConfig[], right_at: number | null): Rightness {
  if (right_at !== null) return { by: labelOf(rewards[0]!), at: right_at, says: false };
  for (const reward of rewards) {
    const { right_at: at, says_right: says = false } = REWARDS[reward.name];
    if (at !== null) return { by: labelOf(reward), at, says };
  }
  return { by: null, at: 1, says: false };
}

/**
 * The samples of a group, with `right` for all of them if any has it: for the others it follows
 * from the score, if they have it. A reward may return `right` for answers that it can read and
 * only a score for the rest.
 */
export function rightOfAll(parts: readonly Record<string, number>[]): Record<string, number>[] {
  const names = new Set(
    parts.flatMap((one) => Object.keys(one).filter((name) => name.endsWith(RIGHT))),
  );
  return parts.map((one) => {
    const more = [...names].filter((name) => !(name in one)).flatMap((name): [string, number][] => {
      const score = one[name.slice(0, -RIGHT.length)];
      return score === undefined ? [] : [[name, score >= RIGHT_SCORE_MIN ? 1 : 0]];
    });
    return { ...one, ...Object.fromEntries(more) };
  });
}
