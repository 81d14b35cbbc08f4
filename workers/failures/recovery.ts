import { z } from "zod";

const /** @internal */ recoverySchema = z.strictObject({
  cause: z.string().describe(
    "Kind of the root failure; engine_lost, resume, fork: a new engine; other_version: no failure.",
  ),
  action: z.enum([
    "load_base",
    "load_checkpoint",
    "load_publication",
    "redo",
    "restart",
    "set_aside",
    "republish",
    "adopt",
  ]),
  version: z.string().nullable().describe("The restored version."),
  group: z.string().optional().describe("The group of the version; absent: the policy's."),
  batches_redone: z.int().nonnegative(),
  seconds: z.number().nonnegative().describe("Seconds from the loss to the next useful work."),
  observed: z.string().optional().describe(
    "The sign that identified the failure, listed in docs/failures.md.",
  ),
  evidence: z.string().optional().describe(
    "Where the logs, stacks and NCCL's records of the lost generation are.",
  ),
});
/**
 * A `recovery` row: what was lost, and what it took until useful work could continue. `show` lists
 * them.
 */
export type Recovery = z.infer<typeof recoverySchema>;
/** Schema of {@linkcode Recovery}. */
export const Recovery: typeof recoverySchema = recoverySchema;

/** A group that was replaced, and how long its work has been interrupted. */
export type Loss = { cause: string; seconds: number; observed?: string; evidence?: string };

/**
 * A `note/device_excluded` row: a GPU that broke. The run excludes it from here on, on every
 * engine.
 */
export const DeviceExcluded = z.strictObject({
  group: z.string(),
  observed: z.string(),
  devices: z.array(z.string()),
});
export type DeviceExcluded = z.infer<typeof DeviceExcluded>;

/**
 * Why a new engine's workers hold nothing: the last engine died, it was stopped, or the run is a
 * new fork.
 */
export type RestartCause = "engine_lost" | "resume" | "fork";
