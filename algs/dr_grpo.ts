/**
 * GRPO "done right". Liu et al. 2025, "Understanding R1-Zero-Like Training", arXiv:2503.20783,
 * section 3.2 and appendix A.
 *
 *     A_i = R_i − mean_G R                                       for every token of sample i
 *     P_t = − min(r_t A_i, clip(r_t, 1 − clip_low, 1 + clip_high) A_i)
 *     L   = mean_i Σ_t P_t ÷ loss_denominator
 *
 * Unlike GRPO, it has no standard deviation, which weighs prompts by how certain the policy is of
 * them, and no 1 ÷ length, which makes long wrong answers cheap.
 *
 * Differences from the paper: `loss_denominator` is 1, as in the paper's equation; its code divides
 * by the maximum completion length, which only scales the gradient (this affects gradient clipping,
 * but not AdamW).
 *
 * Peers: TRL's `loss_type="dr_grpo"` divides by the padded batch times `max_completion_length` and
 * keeps GRPO's standard deviation unless `scale_rewards="none"`; verl's `seq-mean-token-sum-norm`
 * divides by the number of completions and by the padded length; prime-rl has this advantage with a
 * token mean. OpenRLHF's `dr_grpo` has a token mean. FeynRL does not have it.
 */
import { groupCenter } from "./credit/baselines.ts";
import { policyGradient } from "./terms/policy_gradient.ts";

export const dr_grpo = policyGradient({
  name: "dr_grpo",
  about: "GRPO without the standard deviation and without the length.",
  group_min: 2,
  defaults: { clip_low: 0.2, clip_high: 0.2, aggregation: "sequence_mean_token_sum" },
  settings: {},
  advantage: ({ reward, group }) => groupCenter(reward, group), // [N] -> [N]
  examples: [
    { loss_denominator: 8 },
    { kl_coef: 0.04, entropy_coef: 0.01, importance: "token_truncate", dual_clip: 2 },
  ],
});
