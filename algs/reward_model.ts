/**
 * A reward model from pairs. Bradley and Terry 1952; Ouyang et al. 2022, arXiv:2203.02155, eq. 1;
 * the margin is from Touvron et al. 2023, "Llama 2", arXiv:2307.09288, eq. 2.
 *
 *     δ = score_chosen − score_rejected − margin
 *     L = mean over pairs of − log σ(δ) + center_coef · (score_chosen + score_rejected)²
 *
 * The score is one number at the last token. The loss does not determine the level of scores;
 * `center_coef` keeps them near 0 (Eisenstein et al. 2023, arXiv:2312.09244), and is 0 by default
 * as in the papers. `margin` is a number in the row, 0 if it has none.
 *
 * Differences from the papers: Ouyang et al. compare all pairs of one prompt's ranking in one step;
 * here a row is a pair.
 *
 * Peers: TRL's `RewardTrainer` is the same, including the centring. OpenRLHF's `LogExpLoss` is the
 * same function; it reads the margin only with `margin_loss`. verl and FeynRL train no reward
 * models.
 */
import { z } from "zod";
import { defineAlgorithm } from "./algorithm.ts";
import { chosen, pairMean, rejected, scalar } from "./language/mod.ts";

export const reward_model = defineAlgorithm({
  name: "reward_model",
  about: "A reward model from pairs.",
  config: z.strictObject({
    center_coef: z.number().min(0).default(0).describe(
      "Weight of the square of a pair's summed score, which keeps scores near 0.",
    ),
  }),
  head: "score",
  loss: ({ score, margin }, { center_coef }) => {
    const gap = chosen(score).sub(rejected(score)); // [P]
    const pairwise = gap.sub(margin).logSigmoid().neg(); // [P]
    const middle = chosen(score).add(rejected(score)); // [P]
    return {
      loss: pairMean(center_coef === 0 ? pairwise : pairwise.add(middle.square().mul(center_coef))),
      metrics: { "reward/accuracy": pairMean(scalar(0).lt(gap)), "reward/margin": pairMean(gap) },
    };
  },
  examples: [{ center_coef: 0.01 }],
});
