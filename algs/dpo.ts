/**
 * Direct preference optimisation. Rafailov et al. 2023, arXiv:2305.18290, eq. 7.
 *
 *     reward_i = beta · Σ_t (log π(y_t) − log π_ref(y_t))        mean_t with `length_normalised`
 *     δ        = reward_chosen − reward_rejected
 *     s        = label_smoothing
 *     sigmoid:   L = mean over pairs of − (1 − s) · log σ(δ) − s · log σ(−δ)
 *     ipo:       L = mean over pairs of (δ ÷ beta − 1 ÷ (2 beta))²
 *     each     + nll_coef · mean over pairs of − mean_t log π(y_t) of the chosen completion
 *
 * Label smoothing: Mitchell 2023, "A note on DPO with noisy preferences" (conservative DPO). IPO:
 * Azar et al. 2023, arXiv:2310.12036, eq. 17. The length-normalised form: Meng et al. 2024,
 * arXiv:2405.14734, with a reference. The likelihood of the chosen completion, which DPO alone may
 * lower: Pang et al. 2024, arXiv:2404.19733, eq. 1, with alpha ≙ `nll_coef`.
 *
 * Differences from the papers: none in the formulas. A pair's `margin` is not read: reward models
 * read it.
 *
 * Peers: TRL and OpenRLHF have this sigmoid form with beta 0.1; TRL 1.16's ignores label smoothing
 * (its `robust` has a different formula) and its IPO is length-normalised, unlike OpenRLHF's.
 * FeynRL divides each side by its own length, which is `length_normalised` and TRL's
 * `sigmoid_norm`. verl does not have DPO. OpenRLHF's `nll_loss_coef` is `nll_coef`; the `sft` loss
 * that TRL adds is a mean over all chosen tokens, not of each completion first.
 */
import { z } from "zod";
import { defineAlgorithm } from "./algorithm.ts";
import {
  chosen,
  pairMean,
  perSequenceMean,
  perSequenceSum,
  rejected,
  scalar,
} from "./language/mod.ts";

export const dpo = defineAlgorithm({
  name: "dpo",
  about: "Direct preference optimisation: pairs, without a reward model.",
  config: z.strictObject({
    beta: z.number().positive().default(0.1).describe(
      "How strongly the policy is held to the reference model.",
    ),
    loss: z.enum(["sigmoid", "ipo"]).default("sigmoid").describe(
      "The loss of a pair's difference.",
    ),
    label_smoothing: z.number().min(0).lt(0.5).default(0).describe(
      "Assumed share of mislabelled pairs.",
    ),
    length_normalised: z.boolean().default(false).describe(
      "Whether a completion counts by its mean over tokens instead of its sum.",
    ),
    nll_coef: z.number().min(0).default(0).describe(
      "Weight of the chosen completions' mean negative log-likelihood.",
    ),
  }).superRefine(({ loss, label_smoothing }, ctx) => {
    if (loss === "sigmoid" || label_smoothing === 0) return;
    const message =
      "has no meaning for ipo, whose target does not depend on the labels' certainty: leave it out";
    ctx.addIssue({ code: "custom", path: ["label_smoothing"], message });
  }),
  loss: ({ logp, ref_logp }, c) => {
    const difference = logp.sub(ref_logp); // [B, T]
    // [B]
    const whole = c.length_normalised ? perSequenceMean(difference) : perSequenceSum(difference);
    const reward = whole.mul(c.beta); // [B]
    const gap = chosen(reward).sub(rejected(reward)); // [P]
    const wrong = gap.neg().logSigmoid().mul(c.label_smoothing);
    const sigmoid = gap.logSigmoid().mul(c.label_smoothing - 1).sub(wrong); // [P]
    const ipo = chosen(whole).sub(rejected(whole)).sub(1 / (2 * c.beta)).square(); // [P]
    const preferred = c.loss === "ipo"
      ? ipo
      : c.label_smoothing === 0
      ? gap.logSigmoid().neg()
      : sigmoid; // [P]
    const metrics = {
      "reward/accuracy": pairMean(scalar(0).lt(gap)),
      "reward/margin": pairMean(gap),
      "reward/chosen": pairMean(chosen(reward)),
      "reward/rejected": pairMean(rejected(reward)),
    };
    if (c.nll_coef === 0) return { loss: pairMean(preferred), metrics };
    const nll = chosen(perSequenceMean(logp)).neg(); // [P]
    return {
      loss: pairMean(preferred.add(nll.mul(c.nll_coef))),
      metrics: { ...metrics, "policy/chosen_nll": pairMean(nll) },
    };
  },
  examples: [{ label_smoothing: 0.1 }, { loss: "ipo" }, { length_normalised: true }, {
    loss: "ipo",
    length_normalised: true,
  }, { nll_coef: 0.5 }],
});
