/**
 * Group reward-decoupled normalisation policy optimisation. Liu et al. 2026, arXiv:2601.05242: for
 * several rewards.
 *
 *     Z_ki = (R_ki − mean_G R_k) ÷ (std_G R_k + std_epsilon)     of each reward k by itself
 *     S_i  = Σ_k w_k Z_ki                                        w: the weight of the reward
 *     A_i  = (S_i − mean S) ÷ (std S + std_epsilon)              over all samples of the round
 *     r_t  = π(y_t) ÷ π_old(y_t)
 *     P_t  = − min(r_t A_i, clip(r_t, 1 − clip_low, 1 + clip_high) A_i)
 *     L    = mean_i mean_t [ P_t + kl_coef · k3(π, π_ref)_t ]
 *
 * GRPO adds the rewards first, so samples with the same sum have the same advantage, whichever
 * rewards they earned. Here a reward that separates a group counts by its weight, whatever its
 * scale, and the advantages do not grow with the number of rewards.
 *
 * Differences from the paper:
 * - `std_epsilon` is added to the n − 1 standard deviations; the paper states neither.
 * - mean S is not computed: in every group each Z_k sums to 0, so it is 0, and groups of equal
 *   rewards keep advantages of exactly 0.
 * - A reward that does not apply to a sample is left out of its group's mean and standard
 *   deviation, and its Z is 0. A reward with `when` pays 0 where its condition fails, which is the
 *   paper's conditioned reward. Token rewards of an environment count as one more reward.
 * - A KL in the reward would belong to none of the rewards: `kl_in` is `loss` or `advantage`.
 *
 * Peers: TRL's `multi_objective_aggregation="normalize_then_sum"` has these advantages with 1e-4.
 * verl's `adv_estimator: gdpo` whitens S over the tokens of the round, so long completions count
 * more. The authors' fork of TRL replaces missing rewards by 0 and is GRPO if there is one reward.
 */
import { groupZscore } from "./credit/baselines.ts";
import { policyGradient, termExamples } from "./terms/policy_gradient.ts";
import { deviationSettings } from "./terms/terms.ts";

const { std_epsilon } = deviationSettings;

export const gdpo = policyGradient({
  name: "gdpo",
  about: "GRPO that normalises each reward by itself before it adds them.",
  group_min: 2,
  defaults: {
    clip_low: 0.2,
    clip_high: 0.2,
    aggregation: "sequence_mean",
    kl_places: ["loss", "advantage"],
  },
  settings: { std_epsilon },
  needs: ["parts"],
  advantage: ({ group, parts }, c) => {
    const sums = group.map(() => 0); // [N]
    for (const { paid, weight } of parts) {
      const places = [...paid.keys()].filter((i) => paid[i] !== null);
      const [rewards, of] = [places.map((i) => paid[i]!), places.map((i) => group[i]!)];
      const Z = groupZscore(rewards, of, c.std_epsilon);
      places.forEach((i, k) => sums[i]! += weight * Z[k]!);
    }
    const squares = sums.reduce((total, sum) => total + sum * sum, 0);
    if (squares === 0) return sums;
    const deviation = Math.sqrt(squares / (sums.length - 1));
    return sums.map((sum) => sum / (deviation + c.std_epsilon));
  },
  examples: [
    { clip_low: 0.1, clip_high: 0.3, dual_clip: 1.5 },
    ...termExamples.filter((settings) => !("kl_in" in settings && settings.kl_in === "reward")),
  ],
});
