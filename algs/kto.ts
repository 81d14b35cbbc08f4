/**
 * Kahneman-Tversky optimisation: completions that are labelled desirable or undesirable, one by
 * one. Ethayarajh et al. 2024, arXiv:2402.01306, eq. 8.
 *
 *     r_i = Σ_t (log π(y_t) − log π_ref(y_t))                          over completion i
 *     z_0 = max(0, mean of r over mismatched completions)              without gradient
 *     desirable:     v_i = σ(beta · (r_i − z_0))       λ_i = desirable_weight
 *     undesirable:   v_i = σ(beta · (z_0 − r_i))       λ_i = undesirable_weight
 *     kto:                 L = mean over rows of λ_i · (1 − v_i)
 *     apo_zero_unpaired:   the same with z_0 = 0
 *
 * The reference point z_0 estimates the KL of the policy from the reference: each prompt of the
 * batch is followed by the completion of a different one. apo_zero_unpaired: D'Oosterlinck et al.
 * 2024, arXiv:2408.06266, eq. 7, for rows without a partner, as TRL has it.
 *
 * When: you know of each completion whether it is good, and have no pairs.
 *
 * Differences from the paper: none in the formulas. z_0 is a mean over the whole optimizer step,
 * whatever its micro-batches and ranks.
 *
 * Peers: TRL's `KTOTrainer` is the same for a step of one micro-batch on one rank. With more, its
 * z_0 is that of each micro-batch; across ranks it averages those. TRL shifts completions by one
 * row, so that both sides of a pair can meet their own prompt; ours skips that. No other framework
 * was compared.
 */
import { z } from "zod";
import { defineAlgorithm } from "./algorithm.ts";
import { type Expr, perSequenceSum, scalar, stepSum } from "./language/mod.ts";

/** The mean over the sequences where `of` is 1; 0 if there is none. */
function meanOver(of: Expr<"sequence">, x: Expr<"sequence">): Expr<"step"> {
  return stepSum(x.mul(of)).div(stepSum(of).maximum(1));
}

export const kto = defineAlgorithm({
  name: "kto",
  about: "Kahneman-Tversky optimisation: completions labelled good or bad, without pairs.",
  config: z.strictObject({
    beta: z.number().positive().default(0.1).describe(
      "How strongly the policy is held to the reference model.",
    ),
    loss: z.enum(["kto", "apo_zero_unpaired"]).default("kto").describe(
      "What rewards are compared with: the estimated KL, or 0.",
    ),
    desirable_weight: z.number().positive().default(1).describe(
      "Weight of a desirable completion's loss.",
    ),
    undesirable_weight: z.number().positive().default(1).describe(
      "Weight of an undesirable completion's loss.",
    ),
  }),
  unpaired: ({ loss }) => ({ mismatched: loss === "kto" }),
  loss: ({ logp, ref_logp, label }, c) => {
    const desirable = scalar(0).lt(label); // [B]
    const undesirable = label.lt(0); // [B]
    const labelled = label.square(); // [B]
    const mismatched = scalar(1).sub(labelled); // [B]
    const rows = stepSum(labelled);
    const ratio = perSequenceSum(logp.sub(ref_logp)); // [B]
    const kl = meanOver(mismatched, ratio).maximum(0).detach();
    const gain = (c.loss === "kto" ? ratio.sub(kl) : ratio).mul(label); // [B]
    const loss = scalar(1).sub(gain.mul(c.beta).sigmoid()); // [B]
    const weight = desirable.mul(c.desirable_weight).add(undesirable.mul(c.undesirable_weight));
    const chosen = meanOver(desirable, ratio).mul(c.beta);
    const rejected = meanOver(undesirable, ratio).mul(c.beta);
    return {
      loss: stepSum(loss.mul(weight)).div(rows),
      metrics: {
        "reward/accuracy": stepSum(scalar(0).lt(gain)).div(rows),
        "reward/margin": chosen.sub(rejected),
        "reward/chosen": chosen,
        "reward/rejected": rejected,
        "policy/chosen_logp": meanOver(desirable, perSequenceSum(logp)),
        "policy/rejected_logp": meanOver(undesirable, perSequenceSum(logp)),
        ...(c.loss === "kto" && { "policy/kl_ref": kl }),
      },
    };
  },
  examples: [
    { loss: "apo_zero_unpaired" },
    { beta: 0.5, desirable_weight: 1.33 },
    { undesirable_weight: 2 },
  ],
});
