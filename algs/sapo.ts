/**
 * Soft adaptive policy optimisation. Gao et al. 2025, arXiv:2511.20347.
 *
 *     A_i = (R_i − mean_G R) ÷ (std_G R + std_epsilon)           for every token of sample i
 *     r_t = π(y_t) ÷ π_old(y_t)
 *     τ   = temperature_positive where A_i > 0, else temperature_negative
 *     f_t = (4 ÷ τ) · σ(τ (r_t − 1))                             σ: the logistic function
 *     L   = mean_i mean_t − f_t A_i
 *
 * Nothing is clipped: the gradient of f is 4 σ (1 − σ), which is 1 at r = 1 and falls smoothly on
 * both sides, the faster the higher the temperature. A token far from the old policy loses its own
 * weight, and no other token's. Negative advantages raise many tokens that were not sampled, so
 * theirs falls faster.
 *
 * Differences from the paper: none in the formula. `std_epsilon` is as in GRPO. KL is off, as in
 * the paper. Entropy, importance correction and other aggregations are not in the paper: off.
 *
 * Peers: TRL's `loss_type="sapo"`, verl's `loss_mode: sapo` and AReaL's `use_sapo_loss` have this
 * gate with these temperatures. verl keeps log-ratios within ±20. AReaL takes the mean over all
 * tokens. OpenRLHF and FeynRL do not have it.
 */
import { z } from "zod";
import { setting } from "../data/mod.ts";
import { groupZscore } from "./credit/baselines.ts";
import { scalar, tokenMean, where } from "./language/mod.ts";
import { policyLoss } from "./terms/policy_gradient.ts";
import { rewardAlgorithm } from "./families/reward_algorithm.ts";
import { checkTerms, deviationSettings, termExamples, termSettings } from "./terms/terms.ts";

const ADDED = { numerics: false, fork: "free", resume: "refused" } as const;

export const sapo = rewardAlgorithm({
  name: "sapo",
  about: "GRPO with a smooth gate on the ratio instead of a clip.",
  config: z.strictObject({
    temperature_positive: z.number().positive().default(1).describe(
      "How fast the weight of a token falls away from ratio 1 if its advantage is positive.",
    ).register(setting, ADDED),
    temperature_negative: z.number().positive().default(1.05).describe(
      "The same if its advantage is not positive.",
    ).register(setting, ADDED),
    ...deviationSettings,
    ...termSettings({ aggregation: "sequence_mean" }),
  }).superRefine(checkTerms),
  group_min: 2,
  advantage: ({ reward, group }, c) => groupZscore(reward, group, c.std_epsilon), // [N] -> [N]
  loss: (x, c) => {
    const { temperature_positive: above, temperature_negative: below } = c;
    const r = x.logp.sub(x.old_logp).exp(); // [B, T]
    const positive = scalar(0).lt(x.advantage); // [B, T]
    const gate = r.sub(1).mul(where(positive, above, below)).sigmoid(); // [B, T]
    const policy = gate.mul(where(positive, 4 / above, 4 / below)).mul(x.advantage).neg();
    const weight = gate.mul(gate.neg().add(1)).mul(4); // the gradient of f
    return policyLoss(policy, x, c, { "policy/gate_weight": tokenMean(weight) });
  },
  examples: [{ temperature_positive: 2, temperature_negative: 0.5 }, ...termExamples],
});
