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
 * - Dual clip, entropy, importance correction and the other aggregations are not the paper's; all are off by default.
 *
 * Peers: TRL's `loss_type="grpo"` and rl4llm have this aggregation; OpenRLHF, verl and TRL's default take the mean over
 * all tokens instead. FeynRL puts the advantage on the last token only, by default. verl bounds the loss by a
 * dual clip of 3. `std_epsilon` is 1e-4 in TRL, 1e-6 in verl, 1e-8 in FeynRL, 1e-9 in OpenRLHF.
 */
import { z } from "zod";
import { aggregate } from "./aggregation.ts";
import { defineAlgorithm } from "./algorithm.ts";
import { checkClip, clipSettings } from "./clip.ts";
import { groupZscore, sequenceReward } from "./credit.ts";
import { entropyTerm } from "./entropy.ts";
import { corrected } from "./importance.ts";
import { klCoef, klNeeds, klReward, klScaled, klTerm, lessKl, steeredKl } from "./kl.ts";
import { clipFraction, surrogate } from "./language/mod.ts";
import { checkTerms, termExamples, termMetrics, termSettings, total } from "./terms.ts";

export const grpo = defineAlgorithm({
  name: "grpo",
  about: "Group relative policy optimisation.",
  config: z.strictObject({
    ...clipSettings({ low: 0.2, high: 0.2 }),
    std_epsilon: z.number().min(0).default(1e-6).describe("Added to a group's standard deviation."),
    ...termSettings({ aggregation: "sequence_mean" }),
    ...klScaled,
  }).superRefine(checkClip).superRefine(checkTerms),
  coef: klCoef,
  group_min: 2,
  credit: {
    needs: klNeeds,
    assign: (round, c) => {
      const reward = sequenceReward(round, klReward(round, c)); // [N]
      return { advantage: lessKl(groupZscore(reward, round.group, c.std_epsilon), round, c), ...steeredKl(round, c) };
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
  examples: [{ clip_low: 0.1, clip_high: 0.3, dual_clip: 1.5 }, ...termExamples],
});
