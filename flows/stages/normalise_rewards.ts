import { z } from "zod";
import {
  deviationOf,
  NO_SCORES,
  normalisedScore,
  RunningScores,
  withScores,
} from "../../data/mod.ts";
import { defineStage, type Stage } from "../../engine/mod.ts";
import { labelOf, RewardConfig, RewardShaping, scoringFunctions } from "../../rewards/mod.ts";
import { combineScores } from "../../rollouts/mod.ts";
import { roundMetrics } from "./round_metrics.ts";
import { ScoredGroup } from "./score_group.ts";

/** Schema of the running scores of each reward that is normalised, by its label. */
const Running = z.record(z.string(), RunningScores);
/** @internal */
type Running = z.infer<typeof Running>;

const Metrics = z.record(z.string(), z.number());
const Input = z.strictObject({
  scored: z.array(ScoredGroup),
  rewards: z.array(RewardConfig).min(1),
  shaping: RewardShaping.optional(),
  running: Running.describe("As the previous round left it."),
  metrics: Metrics.optional().describe("Of all groups that were drawn; absent: of `scored`."),
});
/** @internal */
type Input = z.infer<typeof Input>;
const Output = z.strictObject({
  scored: z.array(ScoredGroup),
  running: Running,
  metrics: Metrics.describe("Rewards as they were, and what they were normalised by."),
});
/** @internal */
type Output = z.infer<typeof Output>;

/**
 * Adds a round's scores to the running ones, and combines each sample's scores again, normalised by
 * the result. Pure: safe to run twice.
 */
export const normaliseRewards: Stage<z.input<typeof Input>, Output> = defineStage({
  name: "normalise_rewards",
  version: 1,
  input: Input,
  output: Output,
  phase: "training",
  eager: true,
  run(input) {
    const ordered = input.scored.toSorted((a, b) => a.group.draw - b.group.draw);
    const alive = ordered.filter(({ failed }) => failed === null);
    const running = runningAfter(input, alive);
    const metrics = { ...input.metrics ?? roundMetrics(alive), ...metricsOf(running) };
    return { scored: ordered.map((group) => normalised(group, input, running)), running, metrics };
  },
});

function runningAfter({ rewards, running }: Input, alive: readonly ScoredGroup[]): Running {
  const after = rewards.flatMap((reward): [string, RunningScores][] => {
    if (reward.normalise === undefined) return [];
    const name = labelOf(reward);
    const scores = alive.flatMap(({ parts }) => parts[name] ?? []).filter((one) => one !== null);
    return [[name, withScores(running[name] ?? NO_SCORES, scores, reward.normalise)]];
  });
  return Object.fromEntries(after);
}

function metricsOf(running: Running): Record<string, number> {
  return Object.fromEntries(
    Object.entries(running).flatMap(([name, state]) => [
      [`reward/${name}/running_mean`, state.mean],
      [`reward/${name}/running_std`, deviationOf(state)],
    ]),
  );
}

function normalised(
  group: ScoredGroup,
  { rewards, shaping }: Input,
  running: Running,
): ScoredGroup {
  if (group.failed !== null) return group;
  const settings = new Map(rewards.map((reward) => [labelOf(reward), reward.normalise]));
  const functions = scoringFunctions(rewards);
  const byRunning = (name: string, score: number) => {
    const normalise = settings.get(name);
    return normalise === undefined ? score : normalisedScore(score, running[name]!, normalise);
  };
  const combined = group.rewards.map((reward, i) => {
    const scores = Object.entries(group.parts).map(([name, all]) => [name, all[i]!] as const);
    const sample = { stop: group.stops[i]!, tokens: group.lengths[i]!, normalised: byRunning };
    return combineScores(functions, Object.fromEntries(scores), { ...sample, shaping }) ?? reward;
  });
  return { ...group, rewards: combined };
}
