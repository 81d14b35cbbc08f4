/**
 * Geometric-mean policy optimisation. Zhao et al. 2025, arXiv:2507.20673, section 3.
 *
 *     A_i = (R_i − mean_G R) ÷ (std_G R + std_epsilon)
 *     d_t = log π(y_t) − log π_old(y_t), at most clip_high where A_i > 0, else at least −clip_low
 *     s_i = exp(mean_t d_t)                                      of whole completions
 *     L   = mean_i − s_i A_i
 *
 * GRPO's loss is an arithmetic mean of ratios, which a single token far from the old policy
 * dominates; in the geometric mean such a token counts by its logarithm. Unlike GSPO, it is tokens
 * that are clipped, each before the mean.
 *
 * Differences from the paper: none in the formula. The bounds are the paper's, exp(±0.4), here as
 * logarithms. `std_epsilon` is as in GRPO. KL, entropy, importance correction and other
 * aggregations are not in the paper: off. A completion has one ratio, so importance weights apply to
 * whole completions.
 *
 * Peers: verl's `loss_mode: geo_mean` and TRL's experimental `GMPOTrainer` are the same, with their
 * clip settings read as logarithms; verl's are 0.2 unless set. OpenRLHF and FeynRL do not have it.
 */
import { z } from "zod";
import { groupZscore } from "./credit/baselines.ts";
import { sequenceImportanceSettings } from "./terms/importance.ts";
import { perSequenceMean, scalar, tokenMean, where } from "./language/mod.ts";
import { policyLoss } from "./terms/policy_gradient.ts";
import { rewardAlgorithm } from "./families/reward_algorithm.ts";
import { checkTerms, deviationSettings, termSettings } from "./terms/terms.ts";

export const gmpo = rewardAlgorithm({
  name: "gmpo",
  about: "GRPO with the geometric mean of the ratios of a completion.",
  config: z.strictObject({
    clip_low: z.number().min(0).default(0.4).describe(
      "A token's log-ratio counts down to -clip_low if its advantage is not positive.",
    ),
    clip_high: z.number().min(0).default(0.4).describe(
      "A token's log-ratio counts up to clip_high if its advantage is positive.",
    ),
    ...deviationSettings,
    ...termSettings({ aggregation: "sequence_mean" }),
    ...sequenceImportanceSettings,
  }).superRefine(checkTerms),
  group_min: 2,
  advantage: ({ reward, group }, c) => groupZscore(reward, group, c.std_epsilon), // [N] -> [N]
  loss: (x, c) => {
    const { clip_low: low, clip_high: high } = c;
    const d = x.logp.sub(x.old_logp); // [B, T]
    const clipped = where(
      scalar(0).lt(x.advantage),
      d.clamp(-Infinity, high),
      d.clamp(-low, Infinity),
    ); // [B, T]
    const s = perSequenceMean(clipped).exp(); // [B]
    const P = s.mul(x.advantage).neg(); // [B, T]
    const outside = where(d.lt(-low), 1, scalar(high).lt(d)); // [B, T]
    return policyLoss(P, x, c, { "policy/clip_fraction": tokenMean(outside) });
  },
  examples: [
    { clip_low: 0.1, clip_high: 0.2 },
    { kl_coef: 0.04, entropy_coef: 0.01, aggregation: "token_mean" },
    { kl_coef: 0.04, kl_in: "advantage", kl_estimator: "k1", aggregation: "group_mean" },
    { importance: "sequence_truncate", importance_low: 0.9 },
    { importance: "sequence_mask", importance_high: 1.1, aggregation: "token_sum" },
  ],
});
