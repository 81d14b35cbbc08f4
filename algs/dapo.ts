/**
 * Decoupled clip and dynamic sampling policy optimisation. Yu et al. 2025, arXiv:2503.14476, eq. 8
 * to 13.
 *
 *     over = (length_i − (overlong_length_max − overlong_buffer)) ÷ overlong_buffer
 *     R'_i = R_i − overlong_factor · clip(over, 0, 1)
 *     A_i  = (R'_i − mean_G R') ÷ (std_G R' + std_epsilon)       for every token of sample i
 *     P_t  = − min(r_t A_i, clip(r_t, 1 − clip_low, 1 + clip_high) A_i)
 *     L    = mean over groups of Σ_{i,t} P_t ÷ Σ_i length_i
 *
 * Groups whose rewards are all equal are dropped, and more prompts are drawn until the round is
 * full (eq. 11): at most `refill_batches_max` times a round's prompts. The round then trains on the
 * groups it has.
 *
 * Differences from the paper:
 * - The number of draws is bounded; the paper draws until the round is full.
 * - Groups past the end of a round are discarded, as in the paper. `surplus: reuse` trains on them
 *   in the next round; their `old_logp` is the sampler's, so the clip sees how far the policy has
 *   moved since. `surplus: rescore` computes it again: their ratio is 1, and only an importance
 *   correction sees their distance.
 * - The overlong penalty is off until `overlong_buffer` and `overlong_length_max` say where it
 *   starts, because no length suits every task; the paper has 4096 and 20480. The group's rewards
 *   include the penalty.
 * - Overlong filtering (section 3.4) is off until `mask_truncated`.
 * - `std_epsilon` is as in GRPO.
 * - KL is off, as in the paper. Dual clip, entropy and importance correction are not in the paper
 *   and are off.
 *
 * Peers: the paper's denominator is per group, as is that of `group_mean`, the default here. verl,
 * TRL (`loss_type="dapo"`) and FeynRL read it as the mean over all tokens of the step:
 * `aggregation: token_mean`. TRL has no dynamic sampling; FeynRL drops groups without drawing more,
 * and keeps all of them if none is left; OpenRLHF, verl and rl4llm draw again, NeMo-RL at most 10
 * times.
 */
import { groupZscore } from "./credit/baselines.ts";
import { checkOverlong, overlongPenalty, overlongSettings } from "./terms/overlong.ts";
import { deviationSettings, policyGradient } from "./terms/policy_gradient.ts";
import { refillBy, refillSettings } from "./terms/refill.ts";

export const dapo = policyGradient({
  name: "dapo",
  about: "GRPO with a higher upper clip, a mean over each group's tokens and dynamic sampling.",
  group_min: 2,
  defaults: { clip_low: 0.2, clip_high: 0.28, aggregation: "group_mean" },
  settings: {
    ...deviationSettings,
    ...overlongSettings,
    ...refillSettings(10),
  },
  check: checkOverlong,
  refill: refillBy,
  advantage: ({ reward, group, length }, c) => {
    const penalty = overlongPenalty(length, c); // [N]
    return groupZscore(reward.map((r, i) => r + penalty[i]!), group, c.std_epsilon); // [N]
  },
  examples: [
    { aggregation: "token_mean" },
    {
      kl_coef: 0.04,
      entropy_coef: 0.01,
      importance: "token_mask",
      importance_low: 0.8,
      importance_high: 1.2,
    },
  ],
});
