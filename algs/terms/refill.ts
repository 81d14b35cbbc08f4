/**
 * Dynamic sampling: groups without a signal are dropped, and more prompts are drawn. Yu et al.
 * 2025, arXiv:2503.14476, eq. 11; here the number of draws is bounded.
 */
import { z } from "zod";
import { setting } from "../../data/mod.ts";

/**
 * What happens to usable groups that a round has no room for: they are discarded, or they start the
 * next round, with the sampler's log-probabilities as `old_logp` or with those of the policy that
 * is about to be trained.
 */
export const /** @internal */ SURPLUS = ["discard", "reuse", "rescore"] as const;
/** What happens to usable groups that a round has no room for. */
export type Surplus = (typeof SURPLUS)[number];

/** How a round is filled: at most `batches_max` times its prompts are drawn. */
export type Refill = { batches_max: number; surplus: Surplus };

/** @internal What the settings of {@linkcode refillSettings} say. */
type RefillSettings = { refill_batches_max: number; surplus: Surplus };

/** Settings of dynamic sampling. `batches_max`: the default. */
export function refillSettings(batches_max: number): {
  refill_batches_max: z.ZodDefault<z.ZodInt>;
  surplus: z.ZodDefault<z.ZodEnum<{ [S in Surplus]: S }>>;
} {
  return {
    refill_batches_max: z.int().min(0).default(batches_max).describe(
      "The most prompts drawn per round to replace groups of equal rewards, in multiples of " +
        "a round; 0: such groups are not replaced.",
    ).register(setting, { unit: "rounds of prompts" }),
    surplus: z.enum(SURPLUS).default("discard").describe(
      "Usable groups past the end of a round: discard them, reuse them in the next round, " +
        "or reuse and rescore them.",
    ),
  };
}

/** Whether groups without a signal are replaced, and how often; null: they are not. */
export function refillBy({ refill_batches_max, surplus }: RefillSettings): Refill | null {
  return refill_batches_max === 0 ? null : { batches_max: refill_batches_max, surplus };
}
