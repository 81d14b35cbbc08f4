/**
 * REINFORCE leave-one-out. Ahmadian et al. 2024, "Back to Basics", arXiv:2402.14740, section 3;
 * Kool et al. 2019.
 *
 *     R'_i = R_i − kl_coef · Σ_t (log π_old(y_t) − log π_ref(y_t))
 *     A_i  = R'_i − mean of the others' R' in its group
 *     s_i  = π(y_i) ÷ π_old(y_i), of whole completions: a completion is one action
 *     L    = mean_i − min(s_i A_i, clip(s_i, 1 − clip_low, 1 + clip_high) A_i)
 *
 * Differences from the paper: the paper makes one update with samples from the current policy. The
 * ratio is then 1, and this loss has the gradient of −A log π(y). The clipped ratio is TRL's; it
 * allows several updates per round. The weight of the KL is TRL's 0.05; the paper tunes it per task
 * and also has the KL in the reward.
 *
 * Because a completion is one action, the other terms are sums over its tokens, importance weights
 * apply to whole completions, and the only aggregation is the mean over completions.
 *
 * Peers: TRL's `RLOOTrainer` is the same, with groups of 2 by default. OpenRLHF (`rloo`) and verl
 * have this advantage with PPO's token ratio and a token mean; NeMo-RL can have it without a ratio.
 * FeynRL does not have it.
 */
import { z } from "zod";
import { leaveOneOut } from "./credit/baselines.ts";
import { checkClip, clipSettings } from "./terms/clip.ts";
import { checkImportance, sequenceImportanceSettings } from "./terms/importance.ts";
import { checkKl, klSettings, LOSS_OR_REWARD } from "./terms/kl.ts";
import { perSequenceMean, perSequenceSum } from "./language/mod.ts";
import { policyLoss, surrogate } from "./terms/policy_gradient.ts";
import { rewardAlgorithm } from "./families/reward_algorithm.ts";
import { entropySettings } from "./terms/terms.ts";
import { truncationSettings } from "./terms/truncation.ts";

export const rloo = rewardAlgorithm({
  name: "rloo",
  about: "REINFORCE with the other samples of a prompt as the baseline.",
  config: z.strictObject({
    ...clipSettings({ low: 0.2, high: 0.2 }),
    ...klSettings({
      kl_coef: 0.05,
      kl_in: "reward",
      kl_estimator: "k1",
      kl_places: LOSS_OR_REWARD,
    }),
    ...entropySettings,
    ...sequenceImportanceSettings,
    ...truncationSettings,
  }).superRefine(checkClip).superRefine(checkKl).superRefine(checkImportance),
  ratio: "sequence",
  group_min: 2,
  advantage: ({ reward, group }) => leaveOneOut(reward, group), // [N] -> [N]
  loss: (x, c) => {
    const s = perSequenceSum(x.logp.sub(x.old_logp)).exp(); // [B]
    const P = surrogate(s, perSequenceMean(x.advantage), c); // [B]
    return policyLoss(P, x, { ...c, aggregation: "sequence_mean", loss_denominator: 1 });
  },
  examples: [
    { dual_clip: 1.5, importance: "sequence_truncate", importance_low: 0.9, importance_high: 1.1 },
    { kl_in: "loss", kl_estimator: "k3", entropy_coef: 0.01, importance: "sequence_mask" },
  ],
});
