import { z } from "zod";
import { setting } from "../../data/mod.ts";

/** Settings of the overlong penalty. */
export const overlongSettings = {
  overlong_buffer: z.int().min(0).default(0).describe(
    "Tokens before overlong_length_max over which the penalty grows from 0; 0: no penalty.",
  ).register(setting, { unit: "tokens" }),
  overlong_length_max: z.int().positive().nullable().default(null).describe(
    "Length with the full penalty, usually sampler.tokens_max; required if overlong_buffer " +
      "is above 0.",
  ).register(setting, { unit: "tokens" }),
  overlong_factor: z.number().min(0).default(1).describe(
    "The full penalty, subtracted from the reward.",
  ),
};
/** The length from which a completion is penalised, and the size of the penalty. */
export type OverlongSettings = {
  overlong_buffer: number;
  overlong_length_max: number | null;
  overlong_factor: number;
};

/** Refuses a buffer without an end, or one that starts before the completion. */
export function checkOverlong(c: OverlongSettings, ctx: z.RefinementCtx): void {
  if (c.overlong_buffer === 0) return;
  const refuse = (message: string) =>
    ctx.addIssue({ code: "custom", path: ["overlong_buffer"], message });
  if (c.overlong_length_max === null) {
    refuse(
      "needs overlong_length_max, the length with the full penalty: usually " +
        "sampler.tokens_max",
    );
  } else if (c.overlong_buffer > c.overlong_length_max) {
    refuse(`must be at most overlong_length_max (${c.overlong_length_max})`);
  }
}

/**
 * −factor · clip((length − (length_max − buffer)) ÷ buffer, 0, 1): a completion may use the last
 * `buffer` tokens, at a cost. Yu et al. 2025, arXiv:2503.14476, eq. 13. [N] -> [N]
 */
export function overlongPenalty(length: readonly number[], c: OverlongSettings): number[] {
  const { overlong_buffer: buffer, overlong_length_max: length_max, overlong_factor: factor } = c;
  if (buffer === 0 || length_max === null) return length.map(() => 0);
  return length.map((tokens) => {
    const over = (tokens - (length_max - buffer)) / buffer;
    return over <= 0 ? 0 : -factor * Math.min(over, 1);
  });
}
