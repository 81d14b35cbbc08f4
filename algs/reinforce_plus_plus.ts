/**
 * REINFORCE++. Hu et al. 2025, arXiv:2501.03262, section 3.2: one completion per prompt is enough.
 *
 *     r_t = R on the last token, 0 before it, − kl_coef · (log π_old(y_t) − log π_ref(y_t))
 *     A_t = Σ_{k ≥ t} gamma^{k−t} r_k, whitened over the round: minus the mean, ÷ the standard deviation of all tokens
 *     ρ_t = π(y_t) ÷ π_old(y_t)
 *     L   = mean over all tokens of − min(ρ_t A_t, clip(ρ_t, 1 − clip_low, 1 + clip_high) A_t)
 *
 * Differences from the paper: none in the formula. Whitening is over the sampled tokens of the whole round, not of a
 * mini-batch or a rank, with 1e-8 added to the standard deviation. `kl_coef` is OpenRLHF's 0.01: the KL is part of the
 * algorithm, so a reference model is loaded unless it is set to 0.
 *
 * Peers: OpenRLHF (`reinforce`) and verl (`reinforce_plus_plus`) are this, with gamma 1; verl without the KL unless it is
 * asked for. TRL and FeynRL have none.
 */
import { z } from "zod";
import { aggregate } from "./aggregation.ts";
import { defineAlgorithm } from "./algorithm.ts";
import { checkClip, clipSettings } from "./clip.ts";
import { rewardToGo, tokenReward, whiten } from "./credit.ts";
import { entropyTerm } from "./entropy.ts";
import { corrected } from "./importance.ts";
import { klCoef, klNeeds, klReward, klTerm, LOSS_OR_REWARD, steeredKl } from "./kl.ts";
import { clipFraction, surrogate } from "./language/mod.ts";
import { checkTerms, termMetrics, termSettings, total } from "./terms.ts";

export const reinforce_plus_plus = defineAlgorithm({
  name: "reinforce_plus_plus",
  about: "REINFORCE with the KL in the reward, advantages whitened over the round and PPO's clip.",
  config: z.strictObject({
    ...clipSettings({ low: 0.2, high: 0.2 }),
    gamma: z.number().min(0).max(1).default(1).describe("Discount per token."),
    ...termSettings({
      kl_places: LOSS_OR_REWARD,
      aggregation: "token_mean",
      kl_coef: 0.01,
      kl_in: "reward",
      kl_estimator: "k1",
    }),
  }).superRefine(checkClip).superRefine(checkTerms),
  coef: klCoef,
  credit: {
    needs: klNeeds,
    assign: (round, c) => {
      const earned = rewardToGo(tokenReward(round, klReward(round, c)), c.gamma); // [N][T]
      return { advantage: whiten(earned, round.length), ...steeredKl(round, c) };
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
  examples: [{ kl_in: "loss", kl_estimator: "k2", entropy_coef: 0.01, importance: "token_mask", dual_clip: 3 }],
});
