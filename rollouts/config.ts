import { z } from "zod";
import { setting } from "../data/mod.ts";

const /** @internal */ rolloutsConfigSchema = z.strictObject({
  slab_groups: z.int().positive().nullable().default(null).describe(
    "Groups generated as one batch. null: the round divided by the configured number of samplers.",
  ).register(setting, { unit: "groups" }),
  straddle: z.literal(false).default(false).describe(
    "Whether a group may span two policy versions; not supported yet.",
  ),
  on_failed_sample: z.enum(["drop_group", "drop_sample"]).default("drop_group").describe(
    "What to drop if a sample's reward fails: its group, or only the sample.",
  ),
  failed_fraction_max: z.number().min(0).max(1).default(0.1).describe(
    "The run fails if more than this share of its draws fails.",
  ).register(setting, { unit: "fraction", resume: "stages" }),
  allow_truncated_sampling: z.boolean().default(false).describe(
    "Train on samples drawn with top_p < 1, top_k > 0, min_p > 0 or a repetition_penalty, " +
      "although the loss is biased by it.",
  ),
  reward_processes: z.int().positive().default(2).describe(
    "Processes that run rewards written in Python.",
  ).register(setting, { unit: "processes", resume: "workers" }),
}).register(setting, { numerics: false, fork: "free", resume: "refused" });
/** The `rollouts:` block: how prompts become trajectories. */
export type RolloutsConfig = z.infer<typeof rolloutsConfigSchema>;
/** Schema of {@linkcode RolloutsConfig}. */
export const RolloutsConfig: typeof rolloutsConfigSchema = rolloutsConfigSchema;
