/**
 * REINFORCE++ with a group baseline. Hu et al. 2025, arXiv:2501.03262, section 3.3: several
 * completions per prompt.
 *
 *     C_i = R_i − mean_G R                                       for every token of sample i
 *     A_i = (C_i − mean of all C) ÷ (standard deviation of all C), over the tokens of the round
 *     ρ_t = π(y_t) ÷ π_old(y_t)
 *     P_t = − min(ρ_t A_i, clip(ρ_t, 1 − clip_low, 1 + clip_high) A_i)
 *     L   = mean over all tokens of P_t + kl_coef · k2(π, π_ref)_t
 *
 * Unlike GRPO, it has one standard deviation for the whole round instead of one per group, so
 * prompts of which the policy is almost certain do not weigh more; and k2, whose gradient is that
 * of the KL, instead of k3.
 *
 * Differences from the paper: none in the formula. Whitening counts a completion once for each of
 * its tokens, as the paper's code does. `kl_coef` is OpenRLHF's 0.01: a reference model is loaded
 * unless it is set to 0.
 *
 * Peers: OpenRLHF (`reinforce_baseline`) has this with `kl.use_loss` and k2; by default it
 * subtracts k1 from the advantage: `kl_in: advantage`. verl whitens too and has no KL by default.
 * AReaL's default normalisation is close. TRL and FeynRL do not have it.
 */
import { groupCenter } from "./credit/baselines.ts";
import { whiten } from "./credit/credit.ts";
import { policyGradient } from "./terms/policy_gradient.ts";

export const reinforce_plus_plus_baseline = policyGradient({
  name: "reinforce_plus_plus_baseline",
  about: "REINFORCE++ with the mean of a prompt's samples as the baseline.",
  group_min: 2,
  defaults: {
    clip_low: 0.2,
    clip_high: 0.2,
    aggregation: "token_mean",
    kl_coef: 0.01,
    kl_estimator: "k2",
  },
  settings: {},
  advantage: ({ reward, group }) => groupCenter(reward, group), // [N] -> [N]
  normalise: (advantage, { length }) => whiten(advantage, length),
  examples: [{ kl_coef: 0, entropy_coef: 0.01, importance: "geometric_mask", dual_clip: 3 }],
});
