/**
 * GRPO "done right". Liu et al. 2025, "Understanding R1-Zero-Like Training", arXiv:2503.20783, section 3.2 and appendix A.
 *
 *     A_i = R_i − mean_G R                                                       for every token of sample i
 *     L   = mean_i Σ_t − min(r_t A_i, clip(r_t, 1 − clip_low, 1 + clip_high) A_i) ÷ loss_denominator
 *
 * Against GRPO: without the standard deviation, which weighs prompts by how sure they are, and without 1 ÷ length, which
 * makes long wrong answers cheap.
 *
 * Differences from the paper: `loss_denominator` is 1, the paper's equation; its code divides by the length that a
 * completion may have at most, which scales the gradient and nothing else (AdamW does not feel it, gradient clipping does).
 *
 * Peers: TRL's `loss_type="dr_grpo"` divides by the padded batch times `max_completion_length` and keeps GRPO's standard
 * deviation unless `scale_rewards="none"`; verl's `seq-mean-token-sum-norm` divides by the completions and by the padded
 * length; prime-rl has this advantage with a token mean. OpenRLHF calls it `dr_grpo` with a token mean. FeynRL has none.
 */
import { z } from "zod";
import { aggregate } from "./aggregation.ts";
import { defineAlgorithm } from "./algorithm.ts";
import { checkClip, clipSettings } from "./clip.ts";
import { groupCenter, sequenceReward } from "./credit.ts";
import { entropyTerm } from "./entropy.ts";
import { corrected } from "./importance.ts";
import { klCoef, klNeeds, klReward, klTerm, lessKl, steeredKl } from "./kl.ts";
import { clipFraction, surrogate } from "./language/mod.ts";
import { checkTerms, termMetrics, termSettings, total } from "./terms.ts";

export const dr_grpo = defineAlgorithm({
  name: "dr_grpo",
  about: "GRPO without the standard deviation and without the length.",
  config: z.strictObject({
    ...clipSettings({ low: 0.2, high: 0.2 }),
    ...termSettings({ aggregation: "sequence_mean_token_sum" }),
  }).superRefine(checkClip).superRefine(checkTerms),
  coef: klCoef,
  group_min: 2,
  credit: {
    needs: klNeeds,
    assign: (round, c) => {
      const reward = sequenceReward(round, klReward(round, c)); // [N]
      return { advantage: lessKl(groupCenter(reward, round.group), round, c), ...steeredKl(round, c) };
    },
  },
  loss: (x, c) => {
    const ratio = x.logp.sub(x.old_logp).exp(); // [B, T]
    const policy = corrected(surrogate(ratio, x.advantage, c), x, c); // [B, T]
    return {
      loss: aggregate(total(policy, klTerm(x, c), entropyTerm(x, c)), x, c),
      metrics: { "policy/clip_fraction": clipFraction(ratio, c), ...termMetrics(x, c) },
    };
  },
  examples: [{ loss_denominator: 8 }, {
    kl_coef: 0.04,
    entropy_coef: 0.01,
    importance: "token_truncate",
    dual_clip: 2,
  }],
});
