/**
 * A custom algorithm: SAPO, soft adaptive policy optimisation, arXiv:2511.20347. A sigmoid takes
 * the place of the clip.
 *
 *     A_i = (R_i − mean_G R) ÷ (std_G R + std_epsilon)                           for every token of sample i
 *     r_t = π(y_t) ÷ π_old(y_t)
 *     L   = mean_i mean_t [ − 4/τ · σ(τ (r_t − 1)) A_i ],   τ = tau_negative where A_i < 0, else tau_positive
 *
 * `my_algorithm.py` beside it is the same in Python.
 */
import {
  defineAlgorithm,
  groupZscore,
  perSequenceMean,
  sequenceMean,
  tokenMean,
  where,
  z,
} from "holdfast";

export const my_algorithm = defineAlgorithm({
  name: "my_algorithm",
  about: "SAPO: a sigmoid takes the place of the clip.",
  config: z.strictObject({
    tau_positive: z.number().positive().default(1).describe(
      "How fast tokens of a good sample lose their gradient.",
    ),
    tau_negative: z.number().positive().default(1.05).describe(
      "How fast those of a bad sample do.",
    ),
    std_epsilon: z.number().min(0).default(1e-6).describe("Added to a group's standard deviation."),
  }),
  group_min: 2,
  credit: {
    needs: [],
    // [N] -> [N]
    assign: ({ reward, group }, c) => ({ advantage: groupZscore(reward, group, c.std_epsilon) }),
  },
  loss: ({ logp, old_logp, advantage }, c) => {
    const ratio = logp.sub(old_logp).exp(); // [B, T]
    const tau = where(advantage.lt(0), c.tau_negative, c.tau_positive); // [B, T]
    const soft = ratio.sub(1).mul(tau).sigmoid().mul(4).div(tau); // [B, T]
    return {
      loss: sequenceMean(perSequenceMean(soft.mul(advantage).neg())),
      metrics: { "policy/ratio": tokenMean(ratio) },
    };
  },
  examples: [{ tau_positive: 0.5, tau_negative: 2 }],
});
