import { needsOf } from "../algs/mod.ts";
import { OnlineConfig } from "../configs/mod.ts";
import type { Policy } from "../data/mod.ts";
import { graph, type GraphBuilder, type Ref } from "../engine/mod.ts";
import { evaluations } from "./evaluate.ts";
import { checkLedger } from "./ledger.ts";
import { samplingOf } from "./sampling.ts";
import { assignCredit } from "./stages/assign_credit.ts";
import { checkpointPolicy } from "./stages/checkpoint_policy.ts";
import { drawPrompts } from "./stages/draw_prompts.ts";
import { exportPolicy } from "./stages/export_policy.ts";
import { generateSlab } from "./stages/generate_slab.ts";
import { openData, type OpenedSplit } from "./stages/open_data.ts";
import { preparePolicy } from "./stages/prepare_policy.ts";
import { publishPolicy } from "./stages/publish_policy.ts";
import { type ScoredGroup, scoreGroup } from "./stages/score_group.ts";
import { scoreTokens } from "./stages/score_tokens.ts";
import { trainPolicy } from "./stages/train_policy.ts";

/** What the rounds of online RL read of a configuration; the quickstart makes one from its own. */
export type OnlineRounds = Pick<
  OnlineConfig,
  | "seed"
  | "rounds"
  | "prompts_per_round"
  | "samples_per_prompt"
  | "lag"
  | "algorithm"
  | "reward"
  | "sampler"
  | "trainer"
  | "rollouts"
  | "checkpoints"
>;

/** Draws a round's prompts, publishes `policy` to the samplers, generates a group for each prompt and scores it. */
export function scoredRollouts(
  g: GraphBuilder,
  config: OnlineRounds,
  from: { data: Ref<OpenedSplit>; round: Ref<number>; policy: Ref<Policy> },
): Ref<ScoredGroup[]> {
  const { seed, prompts_per_round: count, samples_per_prompt, rollouts, sampler } = config;
  const slabs = { slab_groups: rollouts.slab_groups, samplers: sampler.replicas };
  const drawn = g.stage(drawPrompts, { data: from.data, round: from.round, count, seed, slabs });
  const published = g.stage(publishPolicy, { policy: from.policy });
  const work = { published, samples_per_prompt, sampling: samplingOf(sampler), seed };
  const groups = g.flat(g.map(generateSlab, drawn, work));
  return g.map(scoreGroup, groups, { rewards: config.reward, on_failed_sample: rollouts.on_failed_sample });
}

/** Assigns credit to a round's scored groups and trains `policy` on them. `reference`: what a KL is taken to. */
export function trainedOn(
  g: GraphBuilder,
  config: OnlineRounds,
  from: { scored: Ref<ScoredGroup[]>; policy: Ref<Policy>; reference: Ref<Policy> },
): Ref<Policy> {
  const { algorithm, rollouts: { failed_fraction_max }, sampler: { temperature } } = config;
  const { optimizer, micro_batch_tokens_max, updates_per_batch } = config.trainer;
  const columns = needsOf(algorithm, updates_per_batch); // only what credit and loss read
  const tokens = g.stage(scoreTokens, { ...from, columns, temperature, micro_batch_tokens_max });
  const limits = { temperature, updates_per_batch, failed_fraction_max };
  const batch = g.stage(assignCredit, { scored: from.scored, tokens, algorithm, ...limits }).field("batch");
  return g.stage(trainPolicy, { batch, policy: from.policy, algorithm, optimizer, micro_batch_tokens_max });
}

/** Rounds of sampling, scoring, training and checkpoints. Returns the last policy. */
export function onlineRounds(g: GraphBuilder, config: OnlineRounds, start: Ref<Policy>): Ref<Policy> {
  const { rounds: last, lag, checkpoints } = config;
  const data = g.stage(openData, { split: "train" });
  const rounds = g.loop("round", { times: last, carry: { policy: start }, audit: checkLedger }, (r) => {
    const scored = scoredRollouts(r, config, { data, round: r.index, policy: r.carried("policy", { lag }) });
    const policy = trainedOn(r, config, { scored, policy: r.carried("policy"), reference: start });
    return { policy: r.stage(checkpointPolicy, { policy, round: r.index, last, lag, ...checkpoints }) };
  });
  return rounds.policy;
}

/** Online reinforcement learning: evaluate, train round by round, export, evaluate again. */
export const online = graph("online", OnlineConfig, (g, config) => {
  const start = g.stage(preparePolicy, { model_path: config.model.path, optimizer: config.trainer.optimizer });
  const before = evaluations(g, { ...config, label: "before" }, start);
  const policy = onlineRounds(g, config, start);
  const exported = g.stage(exportPolicy, { policy, name: "final" });
  const after = evaluations(g, { ...config, label: "after" }, policy);
  return { policy, exported, evaluations: [...before, ...after] };
});
