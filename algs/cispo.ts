/**
 * Clipped importance sampling policy optimisation. MiniMax 2025, "MiniMax-M1", arXiv:2506.13585,
 * eq. 4 and 5.
 *
 *     A_i = (R_i − mean_G R) ÷ (std_G R + std_epsilon)           for every token of sample i
 *     r_t = π(y_t) ÷ π_old(y_t)
 *     w_t = sg(clip(r_t, 1 − clip_low, 1 + clip_high))           sg: no gradient
 *     L   = mean over all tokens of − w_t A_i log π(y_t)
 *
 * Unlike with PPO's clip, every token keeps its gradient: rare tokens that start a new thought
 * still contribute.
 *
 * Differences from the paper:
 * - The upper bound is 1 + 4; the paper tunes it without giving its value. Khatri et al. 2025,
 *   "ScaleRL", arXiv:2510.13786, find that results barely change around 5. There is no lower bound
 *   by default, as in the paper.
 * - The paper divides by the tokens of each group, which is `aggregation: group_mean`; the mean
 *   here is over all tokens of the optimizer step, as in every peer.
 * - `std_epsilon` is as in GRPO. KL is off, as in the paper. Entropy and importance correction are
 *   not in the paper and are off.
 *
 * Peers: TRL has only an upper bound, which is `epsilon_high` itself: 5.0 there is 4 here, and its
 * default of 0.2 bounds every weight by 0.2. verl and FeynRL have bounds on both sides, 0.8 and 1.2
 * by default.
 */
import { z } from "zod";
import { groupZscore } from "./credit/baselines.ts";
import { scalar, tokenMean } from "./language/mod.ts";
import { policyLoss } from "./terms/policy_gradient.ts";
import { rewardAlgorithm } from "./families/reward_algorithm.ts";
import { checkTerms, deviationSettings, termSettings } from "./terms/terms.ts";

/** Refuses a lower bound of the weight that is above its upper one. */
function checkBounds(
  { clip_low, clip_high }: { clip_low: number | null; clip_high: number },
  ctx: z.RefinementCtx,
): void {
  if (clip_low === null || clip_low >= -clip_high) return;
  const message =
    `must be at least -clip_high (${-clip_high}): the weight is at least 1 - clip_low, at ` +
    "most 1 + clip_high";
  ctx.addIssue({ code: "custom", path: ["clip_low"], message });
}

export const cispo = rewardAlgorithm({
  name: "cispo",
  about: "Clips the importance weight instead of the objective, so every token keeps its gradient.",
  config: z.strictObject({
    clip_low: z.number().min(0).max(1).nullable().default(null).describe(
      "The weight is at least 1 - clip_low; null: no lower bound.",
    ),
    clip_high: z.number().gt(-1).default(4).describe("The weight is at most 1 + clip_high."),
    ...deviationSettings,
    ...termSettings({ aggregation: "token_mean" }),
  }).superRefine(checkBounds).superRefine(checkTerms),
  group_min: 2,
  advantage: ({ reward, group }, c) => groupZscore(reward, group, c.std_epsilon), // [N] -> [N]
  loss: (x, c) => {
    const ratio = x.logp.sub(x.old_logp).exp(); // [B, T]
    const weight = ratio.clamp(c.clip_low === null ? -Infinity : 1 - c.clip_low, 1 + c.clip_high)
      .detach(); // [B, T]
    const policy = weight.mul(x.advantage).mul(x.logp).neg(); // [B, T]
    const above = scalar(1 + c.clip_high).lt(ratio); // [B, T]
    return policyLoss(policy, x, c, { "policy/clip_fraction": tokenMean(above) });
  },
  examples: [
    { clip_low: 0.2, clip_high: 0.2 },
    { kl_coef: 0.04, entropy_coef: 0.01, importance: "sequence_mask", aggregation: "group_mean" },
  ],
});
