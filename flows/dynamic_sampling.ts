/** Rounds that draw until they are full of groups to learn from. */
import { type Refill, refillOf } from "../algs/mod.ts";
import type { Policy } from "../data/mod.ts";
import type { GraphBuilder, Ref } from "../engine/mod.ts";
import type { OnlineRounds } from "./online_rounds.ts";
import { samplingOf } from "./sampling.ts";
import type { OpenedSplit } from "./stages/open_data.ts";
import { publishPolicy } from "./stages/publish_policy.ts";
import { type Draws, NO_DRAWS, sampleUntilFull } from "./stages/sample_until_full.ts";
import type { ScoredGroup } from "./stages/score_group.ts";

/**
 * What the loop carries for it beside the policy; nothing, where the algorithm takes what a round
 * draws.
 */
export function drawsCarried(g: GraphBuilder, { algorithm }: OnlineRounds): { draws?: Ref<Draws> } {
  return refillOf(algorithm) === null ? {} : { draws: g.constant(NO_DRAWS) };
}

/** What a round draws from. */
export type RefilledFrom = {
  data: Ref<OpenedSplit>;
  round: Ref<number>;
  policy: Ref<Policy>;
  /** What the round before handed on. */
  draws: Ref<Draws>;
  refill: Refill;
};
/** A round's groups, what it hands on to the next, and what it counted. */
export type Refilled = {
  scored: Ref<ScoredGroup[]>;
  draws: Ref<Draws>;
  metrics: Ref<Record<string, number>>;
};

/** As `scoredRollouts`, but draws on until `prompts_per_round` groups are there to learn from. */
export function refilledRollouts(
  g: GraphBuilder,
  config: OnlineRounds,
  from: RefilledFrom,
): Refilled {
  const {
    seed,
    rounds: last,
    prompts_per_round: count,
    samples_per_prompt,
    algorithm,
    sampler,
    rollouts,
  } = config;
  const { slab_groups, on_failed_sample, failed_fraction_max } = rollouts;
  const { policy, refill, ...rest } = from;
  const sampled = g.stage(sampleUntilFull, {
    ...rest,
    ...refill,
    last,
    count,
    seed,
    samples_per_prompt,
    algorithm,
    on_failed_sample,
    failed_fraction_max,
    slabs: { slab_groups, samplers: sampler.replicas },
    published: g.stage(publishPolicy, { policy }),
    sampling: samplingOf(sampler),
    rewards: config.reward,
  });
  return {
    scored: sampled.field("scored"),
    draws: sampled.field("draws"),
    metrics: sampled.field("metrics"),
  };
}
