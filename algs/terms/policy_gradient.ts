/**
 * The clipped policy gradient, the loss of most algorithms here. Schulman et al. 2017,
 * arXiv:1707.06347, eq. 7; the dual clip is that of Ye et al. 2020, arXiv:1912.09729, eq. 5.
 *
 *     r_t = π(y_t) ÷ π_old(y_t)
 *     P_t = − min(r_t A_t, clip(r_t, 1 − clip_low, 1 + clip_high) A_t)
 *           with a `dual_clip`, at most dual_clip · |A_t| where A_t < 0
 *     L   = aggregate_t [ w_t P_t + kl_coef · KL_t − entropy_coef · H_t ]
 *
 * A is the algorithm's credit. The other terms are options: `importance` (w), `kl_estimator`,
 * `entropy_coef`, `aggregation`. Those that are off are absent; `kl_in` moves the KL to the credit.
 */
import { aggregate } from "./aggregation.ts";
import { importanceWeight } from "./importance.ts";
import { klTerm } from "./kl.ts";
import type { Clip, Expr, LossInputs, LossParts } from "../language/mod.ts";
import { clipFraction, perSequenceSum, where } from "../language/mod.ts";
import { policyAlgorithm, type PolicyDeclaration } from "../families/policy_algorithm.ts";
import { type LossSettings, termMetrics } from "./terms.ts";
export { deviationSettings, termExamples } from "./terms.ts";

/** P, of tokens or of whole completions. [B, T] or [B] */
export function surrogate<K extends "token" | "sequence">(
  ratio: Expr<K> | Expr<"sequence">,
  advantage: Expr<K>,
  c: Clip,
): Expr<K> {
  // A kind combines with itself; the compiler cannot see this while K is generic.
  const [r, A] = [ratio, advantage] as unknown as [Expr<"token">, Expr<"token">];
  const clipped = r.clamp(1 - c.clip_low, 1 + c.clip_high);
  const P = r.mul(A).minimum(clipped.mul(A)).neg();
  const bounded = c.dual_clip == null ? P : where(A.lt(0), P.minimum(A.mul(-c.dual_clip)), P);
  return bounded as unknown as Expr<K>;
}

/** L of any P, and its metrics. A completion's P is combined with the sums of its tokens' terms. */
export function policyLoss(
  P: Expr<"token" | "sequence">,
  x: LossInputs<"kl">,
  c: LossSettings,
  metrics: LossParts["metrics"] = {},
): LossParts {
  const [w, kl] = [importanceWeight(x, c), klTerm(x, c)]; // null: off
  const like = (term: Expr<"token">) => P.kind === "token" ? term : perSequenceSum(term);
  let loss = w === null ? P : P.mul(w); // w P
  if (kl !== null) loss = loss.add(like(kl)); // + kl_coef KL
  if (c.entropy_coef > 0) loss = loss.add(like(x.entropy.mul(-c.entropy_coef))); // − entropy_coef H
  return { loss: aggregate(loss, x, c), metrics: { ...metrics, ...termMetrics(x, c) } };
}

/** L with the P of each token's π ÷ π_old. */
function clippedLoss(x: LossInputs<"kl">, c: Clip & LossSettings): LossParts {
  const r = x.logp.sub(x.old_logp).exp(); // [B, T]
  const metrics = { "policy/clip_fraction": clipFraction(r, c) };
  return policyLoss(surrogate(r, x.advantage, c), x, c, metrics);
}

/** Declares an algorithm with this loss and an option for each of its terms. */
export const policyGradient: PolicyDeclaration = policyAlgorithm(clippedLoss);
