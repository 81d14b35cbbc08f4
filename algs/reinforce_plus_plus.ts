/**
 * REINFORCE++. Hu et al. 2025, arXiv:2501.03262, section 3.2: one completion per prompt is enough.
 *
 *     r_t = R on the last token, 0 before it, − kl_coef · (log π_old(y_t) − log π_ref(y_t))
 *     G_t = Σ_{k ≥ t} gamma^{k−t} r_k
 *     A_t = (G_t − mean of all G) ÷ (standard deviation of all G), over the tokens of the round
 *     ρ_t = π(y_t) ÷ π_old(y_t)
 *     L   = mean over all tokens of − min(ρ_t A_t, clip(ρ_t, 1 − clip_low, 1 + clip_high) A_t)
 *
 * Differences from the paper: none in the formula. Whitening covers the sampled tokens of the whole
 * round, not of a mini-batch or a rank, with 1e-8 added to the standard deviation. `kl_coef` is
 * OpenRLHF's 0.01: the KL is part of the algorithm, so a reference model is loaded unless it is set
 * to 0.
 *
 * Peers: OpenRLHF (`reinforce`) and verl (`reinforce_plus_plus`) have this with gamma 1; verl has
 * no KL by default. TRL and FeynRL do not have it.
 */
import { z } from "zod";
import { rewardToGo, whiten } from "./credit/credit.ts";
import { LOSS_OR_REWARD } from "./terms/kl.ts";
import { policyGradient } from "./terms/policy_gradient.ts";

export const reinforce_plus_plus = policyGradient({
  name: "reinforce_plus_plus",
  about: "REINFORCE with the KL in the reward, advantages whitened over the round and PPO's clip.",
  per_token: true,
  defaults: {
    clip_low: 0.2,
    clip_high: 0.2,
    aggregation: "token_mean",
    kl_coef: 0.01,
    kl_in: "reward",
    kl_estimator: "k1",
    kl_places: LOSS_OR_REWARD,
  },
  settings: { gamma: z.number().min(0).max(1).default(1).describe("Discount per token.") },
  advantage: ({ token_reward }, c) => rewardToGo(token_reward, c.gamma), // [N][T] -> [N][T]
  normalise: (advantage, { length }) => whiten(advantage, length),
  examples: [{
    kl_in: "loss",
    kl_estimator: "k2",
    entropy_coef: 0.01,
    importance: "token_mask",
    dual_clip: 3,
  }],
});
