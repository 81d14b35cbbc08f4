/**
 * Importance correction: completions were drawn from the sampler's distribution, which differs from
 * the trainer's by staleness and by rounding. With w_t = π_old(y_t) ÷ π_behaviour(y_t) the policy
 * term, not the KL, is multiplied by
 *
 *     token_truncate       clamp(w_t, low, high)
 *     token_mask           w_t where low ≤ w_t ≤ high, else 0
 *     sequence_truncate    clamp(W, low, high), W = Π_t w_t
 *     sequence_mask        W where low ≤ W ≤ high, else 0
 *     geometric_mask       w_t where low ≤ exp(mean_t log w_t) ≤ high, else 0
 *
 * `token_truncate` is the ρ̄ of Espeholt et al. 2018, arXiv:1802.01561; `token_mask` is "IcePop".
 * `token_truncate` without bounds is the exact weight. Because `old_logp` is then the proximal
 * policy, this is decoupled PPO (Hilton et al. 2022, arXiv:2110.00641), and with an upper bound its
 * capped form. Masked tokens still count in every denominator. No gradient flows through a weight.
 */
import { z } from "zod";
import {
  type Expr,
  type LossInputs,
  perSequenceMean,
  perSequenceSum,
  scalar,
  where,
} from "../language/mod.ts";

const SEQUENCE = ["none", "sequence_truncate", "sequence_mask"] as const;
const ALL = [...SEQUENCE, "token_truncate", "token_mask", "geometric_mask"] as const;
/** @internal */
type Importance = (typeof ALL)[number];
/** @internal */
type Bounds = { importance_low: number; importance_high: number | null };
/** How the policy term is corrected for the sampler's different distribution. */
export type ImportanceSettings = Bounds & { importance: Importance };

const bounds = {
  importance_low: z.number().min(0).default(0).describe("Lower bound of the weight; 0: none."),
  importance_high: z.number().positive().nullable().default(2).describe(
    "Upper bound of the weight; null: none.",
  ),
};
const ABOUT = "How the policy term is corrected for samples of a slightly different distribution.";

/** Settings of the correction. */
export const importanceSettings = {
  importance: z.enum(ALL).default("none").describe(ABOUT),
  ...bounds,
};

/** The same for an algorithm whose action is a whole completion. */
export const sequenceImportanceSettings = {
  importance: z.enum(SEQUENCE).default("none").describe(ABOUT),
  ...bounds,
};

/** Refuses a lower bound that is not below the upper one. */
export function checkImportance(
  { importance_low, importance_high }: ImportanceSettings,
  ctx: z.RefinementCtx,
): void {
  if (importance_high === null || importance_low < importance_high) return;
  ctx.addIssue({
    code: "custom",
    path: ["importance_low"],
    message: `must be less than importance_high (${importance_high})`,
  });
}

/** The weight of each token, or of its sequence; null: none. [B, T] or [B] */
export function importanceWeight(
  { old_logp, behaviour_logp }: LossInputs,
  c: ImportanceSettings | { importance?: undefined },
): Expr<"token" | "sequence"> | null {
  if (c.importance === undefined || c.importance === "none") return null;
  const difference = old_logp.sub(behaviour_logp); // [B, T]
  const w = difference.exp(); // [B, T]
  const whole = perSequenceSum(difference).exp(); // [B]
  switch (c.importance) {
    case "token_truncate":
      return truncated(w, c);
    case "token_mask":
      return where(inside(w, c), w, 0);
    case "sequence_truncate":
      return truncated(whole, c);
    case "sequence_mask":
      return where(inside(whole, c), whole, 0);
    default:
      return where(inside(perSequenceMean(difference).exp(), c), w, 0);
  }
}

function truncated<K extends "token" | "sequence">(
  w: Expr<K>,
  { importance_low, importance_high }: Bounds,
): Expr<K> {
  if (importance_low === 0 && importance_high === null) return w;
  // a weight is never below 0
  return w.clamp(importance_low || -Infinity, importance_high ?? Infinity);
}

/** 1 within the bounds, else 0. */
function inside<K extends "token" | "sequence">(
  w: Expr<K>,
  { importance_low, importance_high }: Bounds,
): Expr<K> {
  const x = w as unknown as Expr<"token">;
  const above = importance_low === 0 ? null : scalar(importance_low).le(x);
  const below = importance_high === null ? null : x.le(importance_high);
  const both = above !== null && below !== null ? above.mul(below) : above ?? below ?? scalar(1);
  return both as unknown as Expr<K>;
}
