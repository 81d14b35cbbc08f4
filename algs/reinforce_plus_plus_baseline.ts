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
import { z } from "zod";
import { aggregate } from "./aggregation.ts";
import { defineAlgorithm } from "./algorithm.ts";
import { checkClip, clipSettings } from "./clip.ts";
import { groupCenter, sequenceReward, whiten } from "./credit.ts";
import { entropyTerm } from "./entropy.ts";
import { corrected } from "./importance.ts";
import { klCoef, klNeeds, klReward, klTerm, lessKl, steeredKl } from "./kl.ts";
import { clipFraction, surrogate } from "./language/mod.ts";
import { checkTerms, termMetrics, termSettings, total } from "./terms.ts";

export const reinforce_plus_plus_baseline = defineAlgorithm({
  name: "reinforce_plus_plus_baseline",
  about: "REINFORCE++ with the mean of a prompt's samples as the baseline.",
  config: z.strictObject({
    ...clipSettings({ low: 0.2, high: 0.2 }),
    ...termSettings({ aggregation: "token_mean", kl_coef: 0.01, kl_estimator: "k2" }),
  }).superRefine(checkClip).superRefine(checkTerms),
  coef: klCoef,
  group_min: 2,
  credit: {
    needs: klNeeds,
    assign: (round, c) => {
      const centered = groupCenter(sequenceReward(round, klReward(round, c)), round.group); // [N]
      return { advantage: whiten(lessKl(centered, round, c), round.length), ...steeredKl(round, c) };
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
  examples: [{ kl_coef: 0, entropy_coef: 0.01, importance: "geometric_mask", dual_clip: 3 }],
});
