import { z } from "zod";
import { chatSettings, setting } from "../data/mod.ts";

export const modelSettings = z.strictObject({
  path: z.string().min(1).describe(
    "The directory of a model with one number as output, exported by `algorithm: reward_model`.",
  ),
  dtype: z.enum(["float32", "bfloat16", "float16"]).default("float32").describe(
    "Data type of its weights and activations.",
  ),
  device: z.enum(["auto", "cpu", "cuda"]).default("cpu").describe(
    "Where it runs; cuda: the first GPU visible to the reward worker, which it can share.",
  ),
  threads: z.int().positive().default(1).describe("CPU threads it uses.").register(setting, {
    unit: "threads",
  }),
  ...chatSettings,
  batch_tokens_max: z.int().positive().default(8192).describe(
    "Maximum tokens per scored batch, including padding.",
  ).register(setting, { unit: "tokens" }),
});

/**
 * What the reward worker receives about a reward model.
 * @internal
 */
export type RewardModelSettings = z.output<typeof modelSettings>;
