/**
 * REINFORCE. Williams 1992, "Simple statistical gradient-following algorithms", section 4, with a baseline.
 *
 *     A_t = Σ_{k ≥ t} gamma^{k−t} r_k − b        r: the reward on the last token, and what the KL takes of each token
 *     b   = 0, or the mean over the round's completions of Σ_k r_k
 *     L   = mean_i Σ_t − A_t log π(y_t)
 *
 * The gradient is the policy gradient, unbiased with `baseline: none`; the round's mean, which each completion is a small
 * part of, biases it by 1 ÷ N and makes it far less noisy. There is no ratio, so each batch serves one update: with
 * several, the later ones are off-policy, and `importance` corrects the sampler's distribution, not that.
 *
 * Peers: verl has this loss for samples that no trainer scores again (`loss_type: reinforce` of its bypass mode), with the
 * advantage of any of its estimators. OpenRLHF's `reinforce` is REINFORCE++. tinker-cookbook's `importance_sampling`
 * multiplies by the ratio, with its gradient. TRL and FeynRL have none.
 */
import { z } from "zod";
import { aggregate } from "./aggregation.ts";
import { defineAlgorithm } from "./algorithm.ts";
import { rewardToGo, roundMean, sequenceReward, tokenReward } from "./credit.ts";
import { entropyTerm } from "./entropy.ts";
import { corrected } from "./importance.ts";
import { klCoef, klNeeds, klReward, klTerm, LOSS_OR_REWARD, steeredKl } from "./kl.ts";
import { checkTerms, termMetrics, termSettings, total } from "./terms.ts";

export const reinforce = defineAlgorithm({
  name: "reinforce",
  about: "The plain policy gradient with a baseline.",
  config: z.strictObject({
    baseline: z.enum(["none", "round_mean"]).default("round_mean").describe(
      "The baseline subtracted from a token's return.",
    ),
    gamma: z.number().min(0).max(1).default(1).describe("Discount per token."),
    ...termSettings({ kl_places: LOSS_OR_REWARD, aggregation: "sequence_mean_token_sum" }),
  }).superRefine(checkTerms),
  coef: klCoef,
  credit: {
    needs: klNeeds,
    assign: (round, c) => {
      const kl = klReward(round, c); // [N][T]
      const earned = rewardToGo(tokenReward(round, kl), c.gamma); // [N][T]
      const baseline = c.baseline === "none" ? 0 : roundMean(sequenceReward(round, kl));
      return { advantage: earned.map((row) => row.map((value) => value - baseline)), ...steeredKl(round, c) };
    },
  },
  loss: (x, c) => {
    const policy = corrected(x.advantage.mul(x.logp).neg(), x, c); // [B, T]
    return { loss: aggregate(total(policy, klTerm(x, c), entropyTerm(x, c)), x, c), metrics: termMetrics(x, c) };
  },
  examples: [
    { aggregation: "token_mean" },
    { aggregation: "sequence_mean", kl_coef: 0.04, entropy_coef: 0.01, importance: "token_truncate" },
  ],
});
