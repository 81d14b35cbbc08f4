/** Rounds that draw until they are full of usable groups. */
import { type Refill, refillOf } from "../algs/mod.ts";
import type { Policy, RecentRewards } from "../data/mod.ts";
import { mixtureOf } from "../configs/mod.ts";
import type { GraphBuilder, Ref } from "../engine/mod.ts";
import { type MixtureCarried, refuseWeights } from "./mixture.ts";
import type { OnlineRounds } from "./online_rounds.ts";
import { samplingOf } from "./sampling.ts";
import type { OpenedSplit } from "./stages/rows/open_data.ts";
import { publishPolicy } from "./stages/publish_policy.ts";
import { type Draws, NO_DRAWS, sampleUntilFull } from "./stages/sample_until_full.ts";
import type { ScoredGroup } from "./stages/score_group.ts";

/**
 * What the loop carries for this besides the policy; nothing if the algorithm trains on whatever a
 * round draws.
 */
export function drawsCarried(g: GraphBuilder, { algorithm }: OnlineRounds): { draws?: Ref<Draws> } {
  return refillOf(algorithm) === null ? {} : { draws: g.constant(NO_DRAWS) };
}

/** Where a round draws from. */
export type RefilledFrom = {
  data: Ref<OpenedSplit>;
  round: Ref<number>;
  policy: Ref<Policy>;
  /** What the previous round passed on. */
  draws: Ref<Draws>;
  /** If sources are mixed. */
  mix?: MixtureCarried;
  refill: Refill;
};
/** A round's groups, what it passes to the next round, and its counts. */
export type Refilled = {
  scored: Ref<ScoredGroup[]>;
  draws: Ref<Draws>;
  /** What it passes on about its sources. */
  mix: MixtureCarried;
  metrics: Ref<Record<string, number>>;
};

/** Like `scoredRollouts`, but continues to draw until `prompts_per_round` groups are usable. */
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
  const { policy, refill, mix = {}, ...rest } = from;
  const mixture = mixtureOf(config.data);
  const { drawn, recent } = mix;
  if (drawn === undefined) refuseWeights(config, "`mix: ...`, what `mixtureCarried` starts with");
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
    shaping: config.reward_shaping ?? undefined,
    mixing: mixture && drawn ? { mixture, drawn, recent } : undefined,
  });
  return {
    scored: sampled.field("scored"),
    draws: sampled.field("draws"),
    mix: {
      drawn: drawn && sampled.field("drawn") as Ref<number[]>,
      recent: recent && sampled.field("recent") as Ref<RecentRewards>,
    },
    metrics: sampled.field("metrics"),
  };
}
