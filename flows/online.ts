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
import { openData } from "./stages/open_data.ts";
import { preparePolicy } from "./stages/prepare_policy.ts";
import { publishPolicy } from "./stages/publish_policy.ts";
import { scoreGroup } from "./stages/score_group.ts";
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

/** Rounds of draw, publish, generate, score, assign credit, train, checkpoint. Returns the last policy. */
export function onlineRounds(g: GraphBuilder, config: OnlineRounds, start: Ref<Policy>): Ref<Policy> {
  const { seed, algorithm, prompts_per_round, samples_per_prompt, rollouts, checkpoints } = config;
  const { optimizer, micro_batch_tokens_max, updates_per_batch } = config.trainer;
  const sampling = samplingOf(config.sampler);
  const { temperature } = sampling;
  const slabs = { slab_groups: rollouts.slab_groups, samplers: config.sampler.replicas };
  const data = g.stage(openData, { split: "train" });
  const rounds = g.loop("round", { times: config.rounds, carry: { policy: start }, audit: checkLedger }, (r) => {
    const policy = r.carried("policy");
    const drawn = r.stage(drawPrompts, { data, round: r.index, count: prompts_per_round, seed, slabs });
    const published = r.stage(publishPolicy, { policy: r.carried("policy", { lag: config.lag }) });
    const groups = r.flat(r.map(generateSlab, drawn, { published, samples_per_prompt, sampling, seed }));
    const { on_failed_sample, failed_fraction_max } = rollouts;
    const scored = r.map(scoreGroup, groups, { rewards: config.reward, on_failed_sample });
    const columns = needsOf(algorithm, updates_per_batch); // only what credit and loss read
    const work = { policy, reference: start, columns, temperature, micro_batch_tokens_max };
    const tokens = r.stage(scoreTokens, { scored, ...work });
    const limits = { temperature, updates_per_batch, failed_fraction_max };
    const credit = r.stage(assignCredit, { scored, tokens, algorithm, ...limits });
    const batch = credit.field("batch");
    const trained = r.stage(trainPolicy, { batch, policy, algorithm, optimizer, micro_batch_tokens_max });
    const last = config.rounds;
    return { policy: r.stage(checkpointPolicy, { policy: trained, round: r.index, last, ...checkpoints }) };
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
