/**
 * REINFORCE. Williams 1992, "Simple statistical gradient-following algorithms", section 4, with a
 * baseline.
 *
 *     r_t = R on the last token, 0 before it, and what the KL takes of each token
 *     A_t = Σ_{k ≥ t} gamma^{k−t} r_k − b
 *     b   = 0, or the mean over the round's completions of Σ_k r_k
 *     L   = mean_i Σ_t − A_t log π(y_t)
 *
 * The gradient is the policy gradient, unbiased with `baseline: none`; the round's mean, which each
 * completion is a small part of, biases it by 1 ÷ N and makes it far less noisy. There is no ratio,
 * so each batch serves one update: with several, the later ones are off-policy, and `importance`
 * corrects the sampler's distribution, not that.
 *
 * Peers: verl has this loss for samples that no trainer scores again (`loss_type: reinforce` of its
 * bypass mode), with the advantage of any of its estimators. OpenRLHF's `reinforce` is REINFORCE++.
 * tinker-cookbook's `importance_sampling` multiplies by the ratio, with its gradient. TRL and
 * FeynRL have none.
 */
import { z } from "zod";
import { roundMean } from "./baselines.ts";
import { rewardToGo } from "./credit.ts";
import { LOSS_OR_REWARD } from "./kl.ts";
import { policyLoss } from "./policy_gradient.ts";
import { rewardAlgorithm } from "./reward_algorithm.ts";
import { checkTerms, termSettings } from "./terms.ts";

export const reinforce = rewardAlgorithm({
  name: "reinforce",
  about: "The plain policy gradient with a baseline.",
  config: z.strictObject({
    baseline: z.enum(["none", "round_mean"]).default("round_mean").describe(
      "The baseline subtracted from a token's return.",
    ),
    gamma: z.number().min(0).max(1).default(1).describe("Discount per token."),
    ...termSettings({ kl_places: LOSS_OR_REWARD, aggregation: "sequence_mean_token_sum" }),
  }).superRefine(checkTerms),
  advantage: ({ reward, token_reward }, c) => {
    const b = c.baseline === "none" ? 0 : roundMean(reward);
    return rewardToGo(token_reward, c.gamma).map((row) => row.map((G) => G - b)); // [N][T]
  },
  loss: (x, c) => policyLoss(x.advantage.mul(x.logp).neg(), x, c),
  examples: [
    { aggregation: "token_mean" },
    {
      aggregation: "sequence_mean",
      kl_coef: 0.04,
      entropy_coef: 0.01,
      importance: "token_truncate",
    },
  ],
});
