import { refillOf } from "../algs/mod.ts";
import { OnlineConfig } from "../configs/mod.ts";
import type { Policy } from "../data/mod.ts";
import { graph, type GraphBuilder, type Ref } from "../engine/mod.ts";
import { drawsCarried, refilledRollouts } from "./dynamic_sampling.ts";
import { evaluations } from "./evaluate.ts";
import { aroundRounds, sampledMeasure } from "./evaluate_rounds.ts";
import { exportedModels } from "./exported_models.ts";
import {
  fixedReference,
  learned,
  type Learner,
  type LearnFrom,
  savedLearner,
  startLearner,
} from "./learner.ts";
import { checkLedger } from "./ledger.ts";
import {
  type Mixed,
  mixedRound,
  mixtureAfter,
  type MixtureCarried,
  mixtureCarried,
  refuseWeights,
} from "./mixture.ts";
import { normalisedRound, refuseNormalising, runningCarried } from "./normalising.ts";
import { openedOf } from "./open_algorithm.ts";
import type { OnlineRounds } from "./online_rounds.ts";
import { openRows } from "./open_rows.ts";
import { judgedRound, progressCarried, untilDone } from "./stop_early.ts";
import { samplingOf } from "./sampling.ts";
import { drawPrompts } from "./stages/rows/draw_prompts.ts";
import { generateSlab } from "./stages/generate_slab.ts";
import type { OpenedSplit } from "./stages/rows/open_data.ts";
import { preparePolicy } from "./stages/prepare_policy.ts";
import { publishPolicy } from "./stages/publish_policy.ts";
import { type ScoredGroup, scoreGroup } from "./stages/score_group.ts";

/**
 * Draws a round's prompts, publishes `policy` to the samplers, generates a group for each prompt
 * and scores it. `mixed`: which sources it draws from, if they are mixed.
 */
export function scoredRollouts(
  g: GraphBuilder,
  config: OnlineRounds,
  from: { data: Ref<OpenedSplit>; round: Ref<number>; policy: Ref<Policy>; mixed?: Mixed },
): Ref<ScoredGroup[]> {
  const { seed, prompts_per_round: count, samples_per_prompt, rollouts, sampler } = config;
  const slabs = { slab_groups: rollouts.slab_groups, samplers: sampler.replicas };
  const { data, round, mixed } = from;
  if (mixed === undefined) refuseWeights(config, "`mixed: mixedRound(...)`");
  const drawn = g.stage(drawPrompts, { data, round, count, seed, slabs, picks: mixed?.picks });
  const published = g.stage(publishPolicy, { policy: from.policy });
  const work = { published, samples_per_prompt, sampling: samplingOf(sampler), seed };
  const groups = g.flat(g.map(generateSlab, drawn, work));
  return g.map(scoreGroup, groups, {
    rewards: config.reward,
    on_failed_sample: rollouts.on_failed_sample,
    shaping: config.reward_shaping ?? undefined,
  });
}

/**
 * Assigns credit to a round's scored groups and trains `policy` on them, for algorithms that learn
 * nothing else (`learned` is for all algorithms). `reference`: the reference of a KL.
 */
export function trainedOn(
  g: GraphBuilder,
  config: OnlineRounds,
  from: Omit<LearnFrom, "critic" | "coef">,
): Ref<Policy> {
  refuseNormalising(config, from);
  return learned(g, config, from).policy;
}

/** A round's groups, and what it passes on about its draws. */
function mixedRollouts(
  g: GraphBuilder,
  config: OnlineRounds,
  { mix, before, ...from }: Parameters<typeof scoredRollouts>[2] & {
    mix: MixtureCarried;
    before?: MixtureCarried["recent"];
  },
): { scored: Ref<ScoredGroup[]>; mix: MixtureCarried; draws?: undefined } {
  const { data, round } = from;
  const mixed = mixedRound(g, config, { data, round, count: config.prompts_per_round, ...mix });
  const scored = scoredRollouts(g, config, { ...from, mixed });
  return { scored, mix: mixtureAfter(g, mixed, { recent: before, round, scored }) };
}

/** Rounds of sampling, scoring, training and checkpoints. Returns what was learned. */
export function onlineRounds(g: GraphBuilder, rounds: OnlineRounds, start: Ref<Policy>): Learner {
  const { rounds: times, lag } = rounds;
  const config = { ...rounds, opened: openedOf(g, rounds, "rewards") };
  const data = openRows(g, rounds, {
    split: "train",
    use: "prompt",
    model_path: start.field("model_path"),
  });
  const refill = refillOf(config.algorithm);
  const fixed = fixedReference(g, config, start);
  const learner = startLearner(g, config, start);
  const mixing = mixtureCarried(g, config);
  const normalising = runningCarried(g, config);
  const carry = {
    ...learner,
    ...mixing,
    ...normalising,
    ...drawsCarried(g, config),
    ...progressCarried(g, config),
  };
  const options = { times, carry, audit: checkLedger, ...untilDone(config) };
  return g.loop("round", options, (r) => {
    const from = { data, round: r.index, policy: r.carried("policy", { lag }) };
    const mix: MixtureCarried = {
      drawn: mixing.drawn && r.carried("drawn"),
      recent: mixing.recent && r.carried("recent", { lag }),
    };
    const sampled = refill
      ? refilledRollouts(r, config, { ...from, mix, refill, draws: r.carried("draws") })
      : mixedRollouts(r, config, { ...from, mix, before: mix.recent && r.carried("recent") });
    const { draws, mix: passed, ...drawn } = sampled;
    const normal = normalising.running &&
      normalisedRound(r, config, { ...drawn, running: r.carried("running") });
    const groups = { ...drawn, ...normal?.groups };
    const before: Learner = {
      policy: r.carried("policy"),
      critic: learner.critic && r.carried("critic"),
      coef: learner.coef && r.carried("coef"),
    };
    const reference = learner.reference && r.carried("reference");
    const now = learned(r, config, { ...groups, ...before, reference: reference ?? fixed });
    const round = r.index;
    const policy = config.evaluated?.(r, { policy: now.policy, round }) ?? now.policy;
    const judging = { policy, round, progress: () => r.carried("progress") };
    const { last, returned } = judgedRound(r, config, judging);
    const saved = savedLearner(r, config, { ...now, policy, reference, round, last });
    return { ...saved, ...passed, running: normal?.running, draws, ...returned };
  });
}

/** Online reinforcement learning: evaluate, train round by round, export, evaluate again. */
export const online = graph("online", OnlineConfig, (g, config) => {
  const start = g.stage(preparePolicy, {
    model_path: config.model.path,
    optimizer: config.trainer.optimizer,
  });
  const every_rounds = config.evaluate?.every_rounds ?? undefined;
  if (every_rounds === undefined) {
    const before = config.start_from === undefined
      ? evaluations(g, { ...config, label: "before" }, start)
      : [];
    const { policy, critic } = onlineRounds(g, config, start);
    const exported = exportedModels(g, config, { policy, critic });
    const after = evaluations(g, { ...config, label: "after" }, policy);
    return { policy, ...exported, evaluations: [...before, ...after] };
  }
  const measure = sampledMeasure(g, config, start);
  const around = aroundRounds(g, config, { measure, every_rounds, start });
  const { evaluated, before } = around;
  const { policy, critic } = onlineRounds(g, { ...config, evaluated }, around.start);
  return { policy, ...exportedModels(g, config, { policy, critic }), evaluations: before };
});
