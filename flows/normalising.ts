/** What a loop carries for rewards that are normalised, and where a round does it. */
import { type GraphBuilder, InvalidInputError, type Ref } from "../engine/mod.ts";
import type { RunningScores } from "../data/mod.ts";
import type { OnlineRounds } from "./online_rounds.ts";
import { normaliseRewards } from "./stages/normalise_rewards.ts";
import type { ScoredGroup } from "./stages/score_group.ts";

type Running = Ref<Record<string, RunningScores>>;

/** Whether a reward is normalised. */
function normalises({ reward }: Pick<OnlineRounds, "reward">): boolean {
  return reward.some(({ normalise }) => normalise !== undefined);
}

/** What the first round starts with; nothing if no reward is normalised. */
export function runningCarried(
  g: GraphBuilder,
  config: Pick<OnlineRounds, "reward">,
): { running?: Running } {
  return normalises(config) ? { running: g.constant({}) } : {};
}

/** A round's scored groups, and the metrics to show of them if they are not their own. */
type ToLearnFrom = {
  scored: Ref<ScoredGroup[]>;
  /** Of all groups that the round drew, if `scored` has only some of them. */
  metrics?: Ref<Record<string, number>>;
  /** Of the rewards as they were before they were normalised. */
  shown?: Ref<Record<string, number>>;
};

/** The groups with normalised rewards. `running`: as the previous round left it. */
export function normalisedRound(
  g: GraphBuilder,
  { reward: rewards, reward_shaping: shaping }: Pick<OnlineRounds, "reward" | "reward_shaping">,
  { running, scored, metrics }: ToLearnFrom & { running: Running },
): { groups: Required<Pick<ToLearnFrom, "scored" | "shown">>; running: Running } {
  const normalised = g.stage(normaliseRewards, {
    scored,
    rewards,
    running,
    shaping: shaping ?? undefined,
    metrics,
  });
  const groups = { scored: normalised.field("scored"), shown: normalised.field("metrics") };
  return { groups, running: normalised.field("running") };
}

/**
 * Refuses normalised rewards in a graph that carries no running scores.
 * @throws {InvalidInputError} `normalise` would have no effect.
 */
export function refuseNormalising(
  config: Pick<OnlineRounds, "reward">,
  { shown }: Pick<ToLearnFrom, "shown">,
): void {
  if (!normalises(config) || shown !== undefined) return;
  throw new InvalidInputError(
    "Cannot train on a round because a reward has `normalise`, and the graph does not carry its " +
      "running scores. Fix: use onlineRounds, or leave it out",
  );
}
