/**
 * Policy-on policy-off policy optimisation. Fakoor, Chaudhari and Smola 2019, arXiv:1905.01756,
 * section 3; the form for language models is FeynRL's.
 *
 *     A_i = (R_i − mean_G R) ÷ (std_G R + std_epsilon)           for every token of sample i
 *     w_t = π(y_t) ÷ π_behaviour(y_t)
 *     ESS = (Σ w_t)² ÷ (n_tokens · Σ w_t²)                       of the whole optimizer step
 *     L   = mean over all tokens of − sg(min(w_t, ESS)) A_i log π(y_t) + (1 − ESS) · pull_t
 *
 * The effective sample size measures what share of the samples counts for the current policy. It
 * caps the weights and sets the pull towards the behaviour policy, so nothing needs tuning for
 * stale samples. It is in [1 ÷ n_tokens, 1], and 1 for any constant weight. No gradient flows
 * through it or through sg.
 *
 * `pull: k3` is exp(−d) − 1 + d with d = log w, as in FeynRL: on samples from the behaviour policy
 * it estimates not KL(π‖π_b) but χ²(π_b‖π) − KL(π_b‖π), which grows much faster with drift. `pull:
 * forward` is w − 1 − log w, an unbiased estimate of KL(π_b‖π) on the same samples.
 *
 * Differences from the paper: the paper uses the exact KL(π‖π_b) over the actions, which would need
 * the log-probabilities of the whole vocabulary at every token, and an actor-critic's advantage.
 * The log-ratio is clamped to ±20 in the weights and in `pull: forward`, but not in `pull: k3`.
 *
 * Peers: FeynRL computes one ESS per micro-batch, so its gradient depends on how a batch is split:
 * it changes by 0.1, 6 or 54 % at a standard deviation of the log-ratio of 0.05, 0.3 or 1. No other
 * peer has P3O.
 */
import { z } from "zod";
import { aggregationSettings, checkAggregation } from "./terms/aggregation.ts";
import { groupZscore } from "./credit/baselines.ts";
import { checkKl, klSettings } from "./terms/kl.ts";
import { k3, scalar, stepSum } from "./language/mod.ts";
import { policyLoss } from "./terms/policy_gradient.ts";
import { rewardAlgorithm } from "./families/reward_algorithm.ts";
import { deviationSettings, entropySettings } from "./terms/terms.ts";
import { truncationSettings } from "./terms/truncation.ts";

export const p3o = rewardAlgorithm({
  name: "p3o",
  about: "The effective sample size caps the weights and holds the policy.",
  config: z.strictObject({
    pull: z.enum(["k3", "forward"]).default("k3").describe(
      "What keeps the policy close to the sampling policy.",
    ),
    ...deviationSettings,
    ...aggregationSettings("token_mean"),
    ...klSettings(),
    ...entropySettings,
    ...truncationSettings,
  }).superRefine(checkAggregation).superRefine(checkKl),
  group_min: 2,
  advantage: ({ reward, group }, c) => groupZscore(reward, group, c.std_epsilon), // [N] -> [N]
  loss: (x, c) => {
    const log_w = x.logp.sub(x.behaviour_logp).clamp(-20, 20); // [B, T]
    const w = log_w.exp(); // [B, T]
    const ess = stepSum(w).square().div(stepSum(w.square()).mul(x.n_tokens)).detach(); // []
    const policy = w.minimum(ess).detach().mul(x.advantage).mul(x.logp).neg(); // [B, T]
    const distance = c.pull === "k3" ? k3(x.logp, x.behaviour_logp) : w.sub(1).sub(log_w); // [B, T]
    const pull = scalar(1).sub(ess).mul(distance); // [B, T]
    return policyLoss(policy.add(pull), x, c, { "policy/ess": ess });
  },
  examples: [{ pull: "forward" }, {
    kl_coef: 0.04,
    entropy_coef: 0.01,
    aggregation: "sequence_mean",
  }],
});
