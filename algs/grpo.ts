/**
 * Group relative policy optimisation. Shao et al. 2024, "DeepSeekMath", arXiv:2402.03300, eq. 3, 4.
 *
 *     A_i = (R_i − mean_G R) ÷ (std_G R + std_epsilon)           for every token of sample i
 *     r_t = π(y_t) ÷ π_old(y_t)
 *     P_t = − min(r_t A_i, clip(r_t, 1 − clip_low, 1 + clip_high) A_i)
 *     L   = mean_i mean_t [ P_t + kl_coef · k3(π, π_ref)_t ]
 *
 * Differences from the paper:
 * - `std_epsilon` is added to the n − 1 standard deviation; the paper states neither. A group of
 *   one has advantage 0.
 * - The lower and the upper clip may differ; the paper has one ε for both.
 * - `kl_coef` is 0 by default, so no reference model is loaded; the paper trains with 0.04.
 * - The mean over samples runs over all samples of the optimizer step: for groups of equal size,
 *   the paper's mean over questions of means over the group. Samples without a token do not count.
 * - Dual clip, entropy, importance correction and other aggregations are not in the paper: off.
 *
 * Peers: TRL's `loss_type="grpo"` and rl4llm have this aggregation; OpenRLHF, verl and TRL's
 * default take the mean over all tokens instead. By default, FeynRL puts the advantage only on the
 * last token. verl bounds the loss by a dual clip of 3. `std_epsilon` is 1e-4 in TRL, 1e-6 in verl,
 * 1e-8 in FeynRL, 1e-9 in OpenRLHF.
 */
import { groupZscore } from "./credit/baselines.ts";
import { deviationSettings, policyGradient, termExamples } from "./terms/policy_gradient.ts";

export const grpo = policyGradient({
  name: "grpo",
  about: "Group relative policy optimisation.",
  group_min: 2,
  defaults: { clip_low: 0.2, clip_high: 0.2, aggregation: "sequence_mean" },
  settings: deviationSettings,
  advantage: ({ reward, group }, c) => groupZscore(reward, group, c.std_epsilon), // [N] -> [N]
  examples: [{ clip_low: 0.1, clip_high: 0.3, dual_clip: 1.5 }, ...termExamples],
});
