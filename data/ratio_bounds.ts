import { z } from "zod";

const /** @internal */ ratioBoundsSchema = z.strictObject({
  low: z.number().nullable().describe("null: no lower bound."),
  high: z.number().nullable().describe("null: no upper bound."),
  ratio: z.enum(["token", "sequence", "sequence_mean"]).describe(
    "The ratio of a token; of a whole completion, the product over its tokens; or that product's " +
      "geometric mean.",
  ),
});
/** The range in which a ratio of two policies should stay: within [1 - low, 1 + high]. */
export type RatioBounds = z.infer<typeof ratioBoundsSchema>;
/** Schema of {@linkcode RatioBounds}. */
export const RatioBounds: typeof ratioBoundsSchema = ratioBoundsSchema;
