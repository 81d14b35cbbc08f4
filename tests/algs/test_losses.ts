/**
 * Losses that only the tests know: what the language must be able to say for algorithms to come. They join the suite by
 * being in the table at the end, and need nothing else. Forms: design of the loss language; papers in `docs/` later.
 */
import { z } from "zod";
import {
  type AnyAlgorithm,
  chosen,
  defineAlgorithm,
  groupMean,
  k3,
  pairMean,
  perSequenceMean,
  perSequenceSum,
  rejected,
  scalar,
  sequenceMean,
  stepSum,
  surrogate,
  tokenMean,
  where,
} from "../../algs/mod.ts";

const clips = { clip_low: z.number().default(0.2), clip_high: z.number().default(0.28) };

/** A live statistic of the whole step (the effective sample size) and, in a metric, a statistic of a statistic. */
const p3o = defineAlgorithm({
  name: "p3o",
  config: z.strictObject({}),
  loss: ({ logp, behaviour_logp, advantage, n_tokens }) => {
    const w = logp.sub(behaviour_logp).clamp(-20, 20).exp(); // [B, T]
    const ess = stepSum(w).square().div(stepSum(w.square()).mul(n_tokens)).detach(); // [], in [1/n, 1]
    const score = w.minimum(ess).detach().mul(advantage).mul(logp).neg();
    const pull = scalar(1).sub(ess).mul(k3(logp, behaviour_logp));
    const spread = tokenMean(w.sub(tokenMean(w)).square());
    return { loss: tokenMean(score.add(pull)), metrics: { "policy/ess": ess, "policy/weight_variance": spread } };
  },
});

/** A statistic of a statistic in the gradient: log-probabilities whitened over the step. */
const whitened = defineAlgorithm({
  name: "whitened",
  config: z.strictObject({}),
  loss: ({ logp, advantage }) => {
    const mean = tokenMean(logp).detach();
    const variance = tokenMean(logp.sub(mean).square()).detach();
    return { loss: tokenMean(logp.sub(mean).div(variance.add(1)).mul(advantage).neg()) };
  },
});

/** A sequence ratio, with gradient through each token. Zheng et al. 2025, arXiv:2507.18071. */
const gspo = defineAlgorithm({
  name: "gspo",
  config: z.strictObject(clips),
  loss: ({ logp, old_logp, advantage }, c) => {
    const sequence_ratio = perSequenceMean(logp.sub(old_logp)).exp(); // [B]
    const ratio = sequence_ratio.detach().mul(logp.sub(logp.detach()).exp()); // [B, T]
    return { loss: sequenceMean(perSequenceMean(surrogate(ratio, advantage, c))) };
  },
});

/** Pairs. Rafailov et al. 2023, arXiv:2305.18290, with label smoothing. */
const dpo = defineAlgorithm({
  name: "dpo",
  config: z.strictObject({ beta: z.number().default(0.1), label_smoothing: z.number().default(0.1) }),
  loss: ({ logp, ref_logp, margin }, c) => {
    const reward = perSequenceSum(logp.sub(ref_logp)).mul(c.beta); // [B]
    const gap = chosen(reward).sub(rejected(reward)).sub(margin); // [P]
    const smooth = gap.logSigmoid().mul(c.label_smoothing - 1).sub(gap.neg().logSigmoid().mul(c.label_smoothing));
    return { loss: pairMean(smooth), metrics: { "reward/accuracy": pairMean(scalar(0).lt(gap)) } };
  },
});

/** A value model's own expression beside the policy's. */
const ppo = defineAlgorithm({
  name: "ppo",
  config: z.strictObject({ ...clips, value_clip: z.number().default(0.2) }),
  loss: ({ logp, old_logp, advantage }, c) => ({
    loss: tokenMean(surrogate(logp.sub(old_logp).exp(), advantage, c)),
  }),
  value_loss: ({ values, old_values, returns }, c) => {
    const near = old_values.add(values.sub(old_values).clamp(-c.value_clip, c.value_clip));
    return { loss: tokenMean(values.sub(returns).square().maximum(near.sub(returns).square()).mul(0.5)) };
  },
});

/** Truncated importance sampling of the policy term, not of the KL; the paper's group mean as another reduction. */
const grpoTis = defineAlgorithm({
  name: "grpo_tis",
  config: z.strictObject({ ...clips, cap: z.number().default(1.3), kl_coef: z.number().default(0.1) }),
  loss: ({ logp, old_logp, behaviour_logp, ref_logp, advantage, group_length }, c) => {
    const w = old_logp.sub(behaviour_logp).exp();
    const policy = surrogate(logp.sub(old_logp).exp(), advantage, c).mul(w.minimum(c.cap).detach());
    return { loss: groupMean(policy.add(k3(logp, ref_logp).mul(c.kl_coef)).div(group_length)) };
  },
});

/** A mask instead of a cap (IcePop), a cap for A < 0 (dual clip), and a coefficient that changes during the run. */
const masked = defineAlgorithm({
  name: "masked",
  config: z.strictObject({ ...clips, high: z.number().default(1.3), dual: z.number().default(1.5) }),
  coef: ["kl"],
  loss: ({ logp, old_logp, behaviour_logp, ref_logp, advantage, coef, staleness, length }, c) => {
    const w = old_logp.sub(behaviour_logp).exp();
    const clipped = surrogate(logp.sub(old_logp).exp(), advantage, c); // [B, T]
    const capped = where(advantage.lt(0), clipped.minimum(advantage.mul(-c.dual)), clipped);
    const policy = capped.mul(w.mul(w.le(c.high))).div(staleness.add(1)).mul(length.log().add(1));
    return { loss: tokenMean(policy).add(tokenMean(k3(logp, ref_logp)).mul(coef.kl)) };
  },
});

/** -A log pi, aggregated as GRPO. */
const reinforce = defineAlgorithm({
  name: "reinforce",
  config: z.strictObject({}),
  loss: ({ logp, advantage, entropy }) => ({
    loss: sequenceMean(perSequenceMean(logp.mul(advantage).neg())),
    metrics: { "policy/entropy": tokenMean(entropy) },
  }),
});

/** -sg(clip(r)) A log pi. MiniMax 2025, arXiv:2506.13585. */
const cispo = defineAlgorithm({
  name: "cispo",
  config: z.strictObject(clips),
  loss: ({ logp, old_logp, advantage }, c) => {
    const weight = logp.sub(old_logp).exp().clamp(1 - c.clip_low, 1 + c.clip_high).detach();
    return { loss: sequenceMean(perSequenceMean(weight.mul(advantage).mul(logp).neg())) };
  },
});

/** A scalar head: -log sigmoid of the score gap. */
const rewardModel = defineAlgorithm({
  name: "reward_model",
  config: z.strictObject({}),
  loss: ({ score, margin }) => ({
    loss: pairMean(chosen(score).sub(rejected(score)).sub(margin).logSigmoid().neg()),
    metrics: { "reward/chosen_sigmoid": pairMean(chosen(score).sigmoid()) },
  }),
});

/** The remaining operations: sums that are linear through subtraction, a choice and a factor. */
const plumbing = defineAlgorithm({
  name: "plumbing",
  config: z.strictObject({}),
  loss: ({ logp, entropy, advantage, n_sequences }) => {
    const scale = stepSum(advantage.square()).div(n_sequences).add(1).log(); // a sum that is not live
    const bonus = where(
      tokenMean(advantage).lt(0.1),
      tokenMean(entropy),
      tokenMean(entropy.exp().sigmoid().maximum(0.7)),
    );
    return { loss: tokenMean(logp.mul(advantage)).neg().div(scale).sub(bonus.mul(0.01)).add(0.5) };
  },
});

/** The table: one line each. */
export const TEST_ALGORITHMS: Record<string, AnyAlgorithm> = {
  p3o,
  whitened,
  gspo,
  dpo,
  ppo,
  grpo_tis: grpoTis,
  masked,
  reinforce,
  cispo,
  reward_model: rewardModel,
  plumbing,
};
