import { z } from "zod";

/**
 * Settings that a resume may change, because no result follows from them: where processes are, how
 * many there are, how long they may take, what is kept. Registering a block covers everything in
 * it. Declared where the setting is:
 *
 * ```ts
 * timeout_ms: z.int().positive().default(10_000).register(mayChange, { read_by: "stages" })
 * ```
 *
 * `read_by`: workers: only worker processes get the new value, and the graph keeps the old one, so
 * that a round is cut as before. stages: a stage's input has it too, and results recorded with the
 * old value stay valid.
 */
export const mayChange: z.core.$ZodRegistry<{ read_by: "workers" | "stages" }> = z.registry<
  { read_by: "workers" | "stages" }
>();
