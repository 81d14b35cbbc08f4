import type { Expr } from "./expr.ts";
import { scalar, tokenMean, where } from "./operations.ts";

/**
 * Bounds of the ratio. `dual_clip`: if the advantage is negative, the loss is at most this many
 * times its size.
 */
export type Clip = { clip_low: number; clip_high: number; dual_clip?: number | null };

/**
 * The share of tokens whose ratio is outside [1 − clip_low, 1 + clip_high], whether or not that
 * stops their gradient.
 */
export function clipFraction(ratio: Expr<"token">, { clip_low, clip_high }: Clip): Expr<"step"> {
  return tokenMean(where(ratio.lt(1 - clip_low), 1, scalar(1 + clip_high).lt(ratio)));
}

/**
 * a − b: an unbiased estimate of KL(a‖b) on samples of a. Schulman 2020, "Approximating KL
 * divergence", as k2 and k3.
 */
export function k1(a: Expr<"token">, b: Expr<"token">): Expr<"token"> {
  return a.sub(b);
}

/**
 * ½(a − b)²: a biased estimate of KL(a‖b); on samples of a its gradient is an unbiased one of
 * KL(a‖b).
 */
export function k2(a: Expr<"token">, b: Expr<"token">): Expr<"token"> {
  return a.sub(b).square().mul(0.5);
}

/**
 * exp(b − a) − 1 + a − b ≥ 0: an unbiased estimate of KL(a‖b) on samples of a; its gradient is one
 * of KL(b‖a).
 */
export function k3(a: Expr<"token">, b: Expr<"token">): Expr<"token"> {
  const difference = b.sub(a); // [B, T]
  return difference.exp().sub(1).sub(difference);
}
