/**
 * Proximal policy optimisation with a value model. Schulman et al. 2017, arXiv:1707.06347, eq. 7
 * and 11; for language models Ouyang et al. 2022, arXiv:2203.02155. Advantages: Schulman et al.
 * 2016, arXiv:1506.02438.
 *
 *     r_t = R on the last token, 0 before it, minus each token's KL
 *     Δ_t = r_t + gamma · V_{t+1} − V_t
 *     A_t = Δ_t + gamma · lambda · A_{t+1};   returns_t = A_t + V_t;   Â: A whitened
 *     V after the last token is 0 if the completion stopped, and the value model's if it was cut
 *     ρ_t = π(y_t) ÷ π_old(y_t)
 *     L   = mean over all tokens of − min(ρ_t Â_t, clip(ρ_t, 1 − clip_low, 1 + clip_high) Â_t)
 *     V_c = V_old + clip(V − V_old, ± value_clip)
 *     L_V = mean over all tokens of ½ max((V − returns)², (V_c − returns)²)
 *
 * The value model has a separate optimizer and separate versions, so no coefficient balances the
 * two losses.
 *
 * Differences from the paper: policy and value share no weights; advantages are whitened over the
 * round's tokens (returns are not); the clipped value loss is from the paper's code, Engstrom et
 * al. 2020, arXiv:2005.12729. gamma is 1, because a reward at the end should not depend on the
 * length; lambda is the paper's 0.95. `kl_coef` is 0 and no reference is loaded; Ouyang et al. have
 * 0.02 with k1 in the reward: `kl_coef: 0.02, kl_in: reward, kl_estimator: k1`.
 *
 * Peers: OpenRLHF and AReaL have lambda 1, rl4llm 0.97, verl 1, TRL's former trainer 0.95.
 * `value_clip` is 0.5 in verl and OpenRLHF, 0.2 in TRL, rl4llm, slime and AReaL; FeynRL does not
 * clip the value loss. verl and OpenRLHF treat a cut completion like one that stopped; FeynRL
 * bootstraps, as here. Masks with holes are an error in FeynRL; here, as in verl, values flow
 * across observations.
 */
import { z } from "zod";
import { explainedVariance, gae, whiten } from "./credit/credit.ts";
import { LOSS_OR_REWARD } from "./terms/kl.ts";
import { tokenMean } from "./language/mod.ts";
import { policyGradient } from "./terms/policy_gradient.ts";

export const ppo = policyGradient({
  name: "ppo",
  about: "The clipped policy gradient with a value model.",
  per_token: true,
  defaults: { clip_low: 0.2, clip_high: 0.2, aggregation: "token_mean", kl_places: LOSS_OR_REWARD },
  settings: {
    gamma: z.number().min(0).max(1).default(1).describe("Discount per token."),
    lambda: z.number().min(0).max(1).default(0.95).describe(
      "0 relies on the value model, 1 on the reward alone.",
    ),
    whiten: z.boolean().default(true).describe(
      "Whether advantages are whitened over the round's tokens.",
    ),
    value_clip: z.number().positive().nullable().default(0.2).describe(
      "How far an update may move a value; null: no limit.",
    ),
  },
  needs: ["values", "bootstrap"],
  advantage: (round, c) => {
    const { advantage, returns } = gae(round.token_reward, round, c); // [N][T]
    return {
      advantage,
      returns,
      metrics: { "value/explained_variance": explainedVariance(returns, round.values) },
    };
  },
  normalise: (advantage, { length }, c) => (c.whiten ? whiten(advantage, length) : advantage),
  value_loss: ({ values, old_values, returns }, { value_clip }) => {
    const far = values.sub(returns).square(); // [B, T]
    const near = value_clip === null
      ? far
      // [B, T]
      : old_values.add(values.sub(old_values).clamp(-value_clip, value_clip)).sub(returns).square();
    return { loss: tokenMean((value_clip === null ? far : far.maximum(near)).mul(0.5)) };
  },
  examples: [
    { value_clip: null, dual_clip: 3 },
    {
      kl_coef: 0.02,
      kl_in: "reward",
      kl_estimator: "k1",
      entropy_coef: 0.01,
      importance: "token_truncate",
    },
  ],
});
