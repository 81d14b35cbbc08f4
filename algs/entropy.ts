import { z } from "zod";
import type { Expr, LossInputs } from "./language/mod.ts";

/** Setting of the entropy bonus. */
export const entropySettings = {
  entropy_coef: z.number().min(0).default(0).describe(
    "Weight of the next-token entropy, which the loss rewards; 0: not computed.",
  ),
};

/** −entropy_coef · H, the term that keeps a policy from becoming certain; null: none. [B, T] */
export function entropyTerm({ entropy }: LossInputs, { entropy_coef }: { entropy_coef: number }): Expr<"token"> | null {
  return entropy_coef === 0 ? null : entropy.mul(-entropy_coef);
}
