/**
 * Group sequence policy optimisation. Zheng et al. 2025, arXiv:2507.18071, eq. 5 to 7 and 13 (its
 * token form).
 *
 *     A_i = (R_i − mean_G R) ÷ (std_G R + std_epsilon)           for every token of sample i
 *     s_i = exp(mean_t (log π(y_t) − log π_old(y_t)))            of whole completions
 *     r_t = sg(s_i) · π(y_t) ÷ sg(π(y_t))                        its value is s_i; sg: no gradient
 *     L   = mean_i mean_t − min(r_t A_i, clip(r_t, 1 − clip_low, 1 + clip_high) A_i)
 *
 * The reward scores whole completions, and so does this ratio: a completion is clipped as a whole
 * or not at all.
 *
 * Differences from the paper: none in the formula. If the advantage is constant within a
 * completion, the token form has the gradient of s_i itself. If a KL in the advantage makes it
 * vary, `ratio_gradient: sequence` is s_i itself, eq. 5: each token then gets the mean over its
 * completion. The bounds are the paper's, 3e-4 and 4e-4: a mean of log-ratios is far closer to 0
 * than a single log-ratio, so 0.2 never clips. `std_epsilon` is as in GRPO.
 *
 * Peers: verl has this form, with the log-ratio at most 10. TRL's
 * `importance_sampling_level="sequence"` has s_i itself and its `loss_type`'s aggregation, by
 * default a mean over tokens. OpenRLHF and AReaL have s_i itself; OpenRLHF leaves the bounds at
 * 0.2, and its ratio uses the sampler's log-probabilities if its importance correction is on.
 * FeynRL does not have it.
 */
import { z } from "zod";
import { groupZscore } from "./credit/baselines.ts";
import { clipFraction, perSequenceMean } from "./language/mod.ts";
import {
  deviationSettings,
  policyGradient,
  policyLoss,
  surrogate,
} from "./terms/policy_gradient.ts";

export const gspo = policyGradient({
  name: "gspo",
  about: "GRPO with one ratio per completion.",
  group_min: 2,
  defaults: { clip_low: 3e-4, clip_high: 4e-4, aggregation: "sequence_mean" },
  settings: {
    ...deviationSettings,
    ratio_gradient: z.enum(["token", "sequence"]).default("token").describe(
      "Ratio per token or per completion; they differ if the advantage varies within a completion.",
    ),
  },
  advantage: ({ reward, group }, c) => groupZscore(reward, group, c.std_epsilon), // [N] -> [N]
  ratio: "sequence_mean",
  loss: (x, c) => {
    const s = perSequenceMean(x.logp.sub(x.old_logp)).exp(); // [B]
    const r = s.detach().mul(x.logp.sub(x.logp.detach()).exp()); // [B, T]
    const policy = surrogate(c.ratio_gradient === "token" ? r : s, x.advantage, c); // [B, T]
    return policyLoss(policy, x, c, { "policy/clip_fraction": clipFraction(r, c) });
  },
  examples: [
    { clip_low: 0.2, clip_high: 0.28, dual_clip: 1.5 },
    {
      clip_low: 0.2,
      clip_high: 0.2,
      ratio_gradient: "sequence",
      kl_coef: 0.04,
      kl_in: "advantage",
      kl_estimator: "k1",
    },
    {
      kl_coef: 0.04,
      entropy_coef: 0.01,
      importance: "sequence_truncate",
      importance_low: 0.5,
      aggregation: "token_mean",
    },
  ],
});
