/**
 * Which samples of an evaluation are right: a reward says so itself, or its score is high enough.
 */
import { labelOf, type RewardConfig } from "./config.ts";
import { REWARDS } from "./table.ts";

/**
 * By default, a sample of a Python function is right from this score on: midway between 0 and 1.
 */
const PYTHON_RIGHT_AT = 0.5;
/** The number, returned with a score, that says whether the sample is right. */
const RIGHT = "/right";

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
    const at = declaredRightAt(reward);
    if (at !== null) return { by: labelOf(reward), at, says: saysRight(reward) };
  }
  return { by: null, at: 1, says: false };
}

/**
 * The samples of a group, with `right` for all of them if any has it: for the others it follows
 * from the score, if they have it. A reward may return `right` for answers that it can read and
 * only a score for the rest.
 */
export function rightOfAll(parts: readonly Record<string, number>[]): Record<string, number>[] {
  const said = new Set(
    parts.flatMap((one) => Object.keys(one).filter((name) => name.endsWith(RIGHT))),
  );
  return parts.map((one) => {
    const more = [...said].filter((name) => !(name in one)).flatMap((name): [string, number][] => {
      const score = one[name.slice(0, -RIGHT.length)];
      return score === undefined ? [] : [[name, score >= PYTHON_RIGHT_AT ? 1 : 0]];
    });
    return { ...one, ...Object.fromEntries(more) };
  });
}

function saysRight(reward: RewardConfig): boolean {
  if (reward.name === "python") return true;
  if (reward.name === "math" || reward.name === "code" || reward.name === "reward_model") {
    return false;
  }
  return (REWARDS[reward.name] as { says_right?: true }).says_right === true;
}

function declaredRightAt(reward: RewardConfig): number | null {
  if (reward.name === "python") return PYTHON_RIGHT_AT;
  if (reward.name === "math" || reward.name === "code") return 1;
  if (reward.name === "reward_model") return null;
  return (REWARDS[reward.name] as { right_at?: number }).right_at ?? null;
}
