/**
 * REINFORCE. Williams 1992, "Simple statistical gradient-following algorithms", section 4, with a
 * baseline.
 *
 *     r_t = R on the last token, 0 before it, minus each token's KL
 *     A_t = Σ_{k ≥ t} gamma^{k−t} r_k − b
 *     b   = 0, or the mean over the round's completions of Σ_k r_k
 *     L   = mean_i Σ_t − A_t log π(y_t)
 *
 * The gradient is the policy gradient, unbiased with `baseline: none`. The round's mean includes
 * each completion's own reward, so it biases the gradient by 1 ÷ N, but makes it far less noisy.
 * There is no ratio, so each batch should have one update: with several, later updates are
 * off-policy; `importance` corrects for the sampler's distribution, but not for this.
 *
 * Peers: verl has this loss for samples that the trainer does not score again (`loss_type:
 * reinforce` of its bypass mode), with any of its advantage estimators. OpenRLHF's `reinforce` is
 * REINFORCE++. tinker-cookbook's `importance_sampling` multiplies by the ratio, with its gradient.
 * TRL and FeynRL do not have it.
 */
import { z } from "zod";
import { roundMean } from "./credit/baselines.ts";
import { rewardToGo } from "./credit/credit.ts";
import { LOSS_OR_REWARD } from "./terms/kl.ts";
import { policyLoss } from "./terms/policy_gradient.ts";
import { rewardAlgorithm } from "./families/reward_algorithm.ts";
import { checkTerms, termSettings } from "./terms/terms.ts";

export const reinforce = rewardAlgorithm({
  name: "reinforce",
  about: "The plain policy gradient with a baseline.",
  per_token: true,
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
