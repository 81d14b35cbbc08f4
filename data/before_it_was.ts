import { z } from "zod";

/**
 * The meaning of a setting in a run recorded before the setting existed, if it differs from today's
 * default. A new setting that changes results is registered where it is declared:
 *
 * ```ts
 * surplus: z.enum(["reuse", "discard"]).default("discard").register(beforeItWas, { value: "reuse" })
 * ```
 *
 * A recorded configuration without the field is read with this value, so that an old run keeps its
 * meaning; a new run gets the default.
 */
export const beforeItWas: z.core.$ZodRegistry<{ value: unknown }> = z.registry<{ value: unknown }>();
