/**
 * How the losses of tokens become one number of an optimizer step. Every count is of the whole
 * step, over all ranks and micro-batches, and leaves out sequences without a token.
 *
 *     token_mean                Σ L_it ÷ n_tokens
 *     sequence_mean             mean_i mean_t L_it
 *     sequence_mean_token_sum   mean_i Σ_t L_it ÷ loss_denominator
 *     group_mean                mean over groups of Σ_it L_it ÷ the group's tokens
 *     token_sum                 Σ L_it ÷ loss_denominator
 *
 * With `token_mean` long completions weigh more; `sequence_mean_token_sum` is the same with a
 * constant denominator. With `sequence_mean` every completion weighs the same. With `token_sum`
 * larger batches take larger steps.
 */
import { z } from "zod";
import {
  type Expr,
  groupMean,
  type LossInputs,
  perSequenceMean,
  sequenceMean,
  stepSum,
  tokenMean,
} from "../language/mod.ts";

const AGGREGATIONS = [
  "token_mean",
  "sequence_mean",
  "sequence_mean_token_sum",
  "group_mean",
  "token_sum",
] as const;
/** @internal */
type Aggregation = (typeof AGGREGATIONS)[number];
/** How token losses are reduced to one number. */
export type AggregationSettings = { aggregation: Aggregation; loss_denominator: number };

/** Settings of the aggregation, with the algorithm's default. */
export function aggregationSettings(first: Aggregation) {
  return {
    aggregation: z.enum(AGGREGATIONS).default(first).describe(
      "How token losses are reduced to one number.",
    ),
    loss_denominator: z.number().positive().default(1).describe(
      "Divisor of the two sums, e.g. the maximum completion length.",
    ),
  };
}

/** Refuses a denominator that has no effect. */
export function checkAggregation(
  { aggregation, loss_denominator }: AggregationSettings,
  ctx: z.RefinementCtx,
): void {
  if (loss_denominator === 1 || aggregation.endsWith("_sum")) return;
  ctx.addIssue({
    code: "custom",
    path: ["loss_denominator"],
    message: `has no effect with aggregation ${aggregation}: leave it out, or use ` +
      "sequence_mean_token_sum or token_sum",
  });
}

/** [B, T] or, where a whole completion is one action, [B] -> []: the step's loss. */
export function aggregate(
  loss: Expr<"token" | "sequence">,
  { group_length }: LossInputs,
  { aggregation, loss_denominator }: AggregationSettings,
): Expr<"step"> {
  switch (aggregation) {
    case "token_mean":
      return tokenMean(loss);
    case "sequence_mean":
      return sequenceMean(loss.kind === "token" ? perSequenceMean(loss as Expr<"token">) : loss);
    case "sequence_mean_token_sum":
      return divided(sequenceMean(loss), loss_denominator);
    case "group_mean":
      return groupMean(loss.div(group_length));
    case "token_sum":
      return divided(stepSum(loss), loss_denominator);
  }
}

function divided(sum: Expr<"step">, denominator: number): Expr<"step"> {
  return denominator === 1 ? sum : sum.div(denominator);
}
