/**
 * Group relative policy optimisation. Shao et al. 2024, "DeepSeekMath", arXiv:2402.03300, eq. 3 and 4, section 4.1.2.
 *
 *     A_i = (R_i − mean_G R) ÷ (std_G R + std_epsilon)                           for every token of sample i
 *     r_t = π(y_t) ÷ π_old(y_t)
 *     L   = mean_i mean_t [ − min(r_t A_i, clip(r_t, 1 − clip_low, 1 + clip_high) A_i) + kl_coef · k3(π, π_ref)_t ]
 *
 * Differences from the paper:
 * - `std_epsilon` is added to the standard deviation, which is that of n − 1; the paper states neither. A group of one
 *   has advantage 0.
 * - The lower and the upper clip may differ; the paper has one ε. Equal ones are the paper's.
 * - `kl_coef` is 0 by default and no reference model is then loaded; the paper trains with 0.04.
 * - The mean over samples runs over all samples of the optimizer step, which for groups of equal size is the paper's mean
 *   over questions of means over the group. Samples without a token are left out of the count.
 *
 * Peers: TRL's `loss_type="grpo"` and rl4llm have this aggregation; OpenRLHF, verl and TRL's default take the mean over
 * all tokens instead. FeynRL puts the advantage on the last token only, unless told otherwise.
 */
import { z } from "zod";
import { defineAlgorithm } from "./algorithm.ts";
import { groupZscore } from "./credit.ts";
import { k3, perSequenceMean, sequenceMean, surrogate, tokenMean } from "./language/mod.ts";

export const grpo = defineAlgorithm({
  name: "grpo",
  about: "Group relative policy optimisation.",
  config: z.strictObject({
    clip_low: z.number().min(0).max(1).default(0.2).describe("The ratio stays above 1 - clip_low."),
    clip_high: z.number().min(0).default(0.2).describe("The ratio stays below 1 + clip_high."),
    kl_coef: z.number().min(0).default(0).describe("Weight of the KL to the reference model; 0: none is loaded."),
    std_epsilon: z.number().min(0).default(1e-6).describe("Added to a group's standard deviation."),
  }),
  group_min: 2,
  credit: {
    needs: [],
    assign: ({ reward, group }, c) => ({ advantage: groupZscore(reward, group, c.std_epsilon) }), // [N] -> [N]
  },
  loss: ({ logp, old_logp, ref_logp, advantage }, c) => {
    const ratio = logp.sub(old_logp).exp(); // [B, T]
    const policy = surrogate(ratio, advantage, c); // [B, T]
    if (c.kl_coef === 0) return { loss: sequenceMean(perSequenceMean(policy)) };
    const kl = k3(logp, ref_logp); // [B, T]
    return {
      loss: sequenceMean(perSequenceMean(policy.add(kl.mul(c.kl_coef)))),
      metrics: { "policy/kl_ref": tokenMean(kl) },
    };
  },
  examples: [{ kl_coef: 0.04 }, { clip_low: 0.1, clip_high: 0.3 }],
});
