import type { RewardPart } from "../../algs/mod.ts";
import { type RewardConfig, scoringFunctions } from "../../rewards/mod.ts";
import type { ScoredGroup } from "./score_group.ts";

/**
 * What each reward paid by itself, [N] in draw order: 0 where its `when` fails, null where it or
 * its condition does not apply. `token_reward`: token rewards of an environment, one reward more.
 */
export function rewardParts(
  groups: readonly ScoredGroup[],
  rewards: readonly RewardConfig[],
  token_reward?: readonly (readonly number[])[],
): RewardPart[] {
  const functions = scoringFunctions(rewards);
  const conditions = new Map(functions.map(({ name, when }) => [name, when]));
  const scoreOf = (of: ScoredGroup["parts"], name: string, i: number): number | null => {
    const score = of[name]?.[i] ?? null;
    const when = conditions.get(name);
    if (score === null || when === undefined) return score;
    if (scoreOf(of, when, i) === null) return null;
    return of[when]![i]! > 0 ? score : 0;
  };
  const parts = functions.map(({ name, weight }) => ({
    name,
    weight,
    paid: groups.flatMap((group) => group.rewards.map((_, i) => scoreOf(group.parts, name, i))),
  }));
  if (token_reward === undefined) return parts;
  const paid = token_reward.map((row) => row.reduce((sum, reward) => sum + reward, 0));
  return [...parts, { name: "environment", weight: 1, paid }];
}
