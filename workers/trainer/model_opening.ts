import { z } from "zod";
import { setting, type SettingFacts } from "../../data/mod.ts";

/** A version's bits depend on it, so it stays as it is for the whole run and for its forks. */
const FIXED: SettingFacts = {
  numerics: true,
  fork: { fixed: "start", why: "every version of the prefix was computed with it" },
  resume: "refused",
};

/**
 * How a model is opened by transformers: the trainer's, its reference and its value model, and the
 * copies that samplers hold.
 */
export const ModelOpening = z.strictObject({
  attn_implementation: z.enum([
    "eager",
    "sdpa",
    "flash_attention_2",
    "flash_attention_3",
    "flex_attention",
  ]).nullable().default(null).describe(
    "Kernels that compute attention, by their name in transformers; null: those that it chooses " +
      "for the model. For the reference and the value model, too. vLLM has its own kernels.",
  ).register(setting, FIXED),
  trust_remote_code: z.boolean().default(false).describe(
    "Run Python code that the model's directory or hub repository brings. It runs in the workers " +
      "with your rights: read it first. For the reference and the value model, too.",
  ).register(setting, FIXED),
  open_with_missing: z.boolean().default(false).describe(
    "Open a model that lacks tensors, with random numbers in their place, the same in every run; " +
      "false: refuse it. For the reference and the value model, too.",
  ).register(setting, FIXED),
  open_with_unexpected: z.boolean().default(false).describe(
    "Open a model whose files have tensors that it has no place for, without them: exports lack " +
      "them, too; false: refuse it. For the reference and the value model, too.",
  ).register(setting, {
    numerics: false, // It decides whether a step is taken, not its bits.
    fork: "free",
    resume: "workers",
  }),
});
/** How a model is opened. */
export type ModelOpening = z.infer<typeof ModelOpening>;

/** What processes are started with. */
export const OPENING_SPEC = {
  attn_implementation: z.string().nullable(),
  trust_remote_code: z.boolean(),
  open_with_missing: z.boolean(),
  open_with_unexpected: z.boolean(),
};
