import { z } from "zod";

/** Settings of PPO's clip and of the dual clip, for `surrogate`. */
export function clipSettings({ low, high }: { low: number; high: number }): ClipShape {
  return {
    clip_low: z.number().min(0).max(1).default(low).describe("The ratio stays above 1 - clip_low."),
    clip_high: z.number().min(0).default(high).describe("The ratio stays below 1 + clip_high."),
    dual_clip: z.number().gt(1).nullable().default(null).describe(
      "If the advantage is negative, the loss is at most this many times its size; null: no bound.",
    ),
  };
}
/** @internal */
type ClipShape = {
  clip_low: z.ZodDefault<z.ZodNumber>;
  clip_high: z.ZodDefault<z.ZodNumber>;
  dual_clip: z.ZodDefault<z.ZodNullable<z.ZodNumber>>;
};
/** What {@linkcode checkClip} reads. */
export type ClipSettings = { clip_high: number; dual_clip: number | null };

/** Refuses a dual clip below the upper clip. */
export function checkClip({ clip_high, dual_clip }: ClipSettings, ctx: z.RefinementCtx): void {
  if (dual_clip === null || dual_clip > 1 + clip_high) return;
  ctx.addIssue({
    code: "custom",
    path: ["dual_clip"],
    message: `overrides the ratio's clip: it must be more than 1 + clip_high (${1 + clip_high})`,
  });
}
