/**
 * REINFORCE++ with a group baseline. Hu et al. 2025, arXiv:2501.03262, section 3.3: several completions per prompt.
 *
 *     A_i = R_i − mean_G R, then whitened over the round: minus the mean, ÷ the standard deviation of all tokens
 *     ρ_t = π(y_t) ÷ π_old(y_t)
 *     L   = mean over all tokens of − min(ρ_t A_i, clip(ρ_t, 1 − clip_low, 1 + clip_high) A_i) + kl_coef · k2(π, π_ref)_t
 *
 * Against GRPO: one standard deviation for the whole round instead of one a group, so that prompts of which the policy is
 * almost sure do not weigh more; and k2, whose gradient is that of the KL, instead of k3.
 *
 * Differences from the paper: none in the formula. Whitening counts a completion once for each of its tokens, as the paper's
 * code does. `kl_coef` is OpenRLHF's 0.01: a reference model is loaded unless it is set to 0.
 *
 * Peers: OpenRLHF (`reinforce_baseline`) is this with `kl.use_loss` and k2; by default it takes k1 from the advantage:
 * `kl_in: advantage`. verl whitens too and has the KL only where it is asked for. AReaL's default normalisation is close. TRL and
 * FeynRL have none.
 */
import { groupCenter } from "./baselines.ts";
import { whiten } from "./credit.ts";
import { policyGradient } from "./policy_gradient.ts";

export const reinforce_plus_plus_baseline = policyGradient({
  name: "reinforce_plus_plus_baseline",
  about: "REINFORCE++ with the mean of a prompt's samples as the baseline.",
  group_min: 2,
  defaults: { clip_low: 0.2, clip_high: 0.2, aggregation: "token_mean", kl_coef: 0.01, kl_estimator: "k2" },
  settings: {},
  advantage: ({ reward, group }) => groupCenter(reward, group), // [N] -> [N]
  normalise: (advantage, { length }) => whiten(advantage, length),
  examples: [{ kl_coef: 0, entropy_coef: 0.01, importance: "geometric_mask", dual_clip: 3 }],
});
