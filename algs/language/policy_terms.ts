import type { Expr } from "./expr.ts";

/** −min(rA, clamp(r, 1 − clip_low, 1 + clip_high)·A): PPO's clipped objective. Schulman et al. 2017, arXiv:1707.06347, eq. 7. */
export function surrogate(
  ratio: Expr<"token">,
  advantage: Expr<"token">,
  { clip_low, clip_high }: { clip_low: number; clip_high: number },
): Expr<"token"> {
  const clipped = ratio.clamp(1 - clip_low, 1 + clip_high); // [B, T]
  return ratio.mul(advantage).minimum(clipped.mul(advantage)).neg();
}

/** exp(b − a) − 1 + a − b ≥ 0: an unbiased estimate of KL(a‖b) on samples of a. Schulman 2020, "Approximating KL divergence". */
export function k3(a: Expr<"token">, b: Expr<"token">): Expr<"token"> {
  const difference = b.sub(a); // [B, T]
  return difference.exp().sub(1).sub(difference);
}
