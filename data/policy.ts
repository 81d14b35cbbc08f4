import { z } from "zod";
import { ArtifactRef } from "./artifact_ref.ts";
import { setting } from "./setting.ts";

/** Low-rank adapters in place of all weights: how they are created, and what they compute. */
const LoraShape = z.strictObject({
  rank: z.int().positive(),
  alpha: z.number(),
  dropout: z.number(),
  targets: z.union([z.string(), z.array(z.string())]),
  quantize: z.string().nullable(),
  seed: z.int().describe("Seed of the matrices that do not start at zero."),
});
type LoraShape = z.infer<typeof LoraShape>;

/**
 * How the rows of a step enter the model. A redo uses the recorded values, not the current
 * configuration.
 */
export const StepCut = z.strictObject({
  logits_chunk_tokens: z.int().positive().nullable().describe(
    "null: never in chunks.",
  ),
  packing: z.boolean().describe(
    "Sequences are packed into rows, with a group's common prefix stored once; false: they " +
      "are padded.",
  ),
});
export type StepCut = z.infer<typeof StepCut>;

/** Everything that can change the bits of an optimizer step. */
export const Numerics = z.strictObject({
  engine: z.string(),
  zero: z.int(),
  world_size: z.int(),
  dtype: z.string(),
  threads: z.int(),
  device: z.string(),
  packages: z.record(z.string(), z.string()),
  micro_batch_tokens_max: z.int(),
  ...StepCut.shape,
  dropout: z.number(),
  lora: LoraShape.nullable(),
  offload: z.strictObject({ optimizer: z.boolean(), parameters: z.boolean() }),
  attn_implementation: z.string().nullable(),
  trust_remote_code: z.boolean(),
  open_with_missing: z.boolean(),
});
export type Numerics = z.infer<typeof Numerics>;

/** For a model with padded rows and no vocabulary to chunk, fully trained and without dropout. */
export const PLAIN_NUMERICS = {
  logits_chunk_tokens: 4096,
  packing: false,
  dropout: 0,
  lora: null,
} satisfies Partial<Numerics>;

/** The part of numerics that an operation receives. */
export function stepCut({ logits_chunk_tokens, packing }: StepCut): StepCut {
  return { logits_chunk_tokens, packing };
}

/** Learning rate over optimizer steps: lr * factor(step). */
export const Schedule = z.strictObject({
  name: z.enum(["constant", "linear", "cosine"]).default("constant").describe(
    "Shape of the schedule after the warm-up.",
  ),
  warmup_steps: z.int().nonnegative().default(0).describe(
    "Optimizer steps over which the learning rate rises from 0 to lr.",
  ).register(setting, { unit: "steps" }),
  stable_steps: z.int().nonnegative().default(0).describe(
    "Optimizer steps at lr between the warm-up and the decay of linear and cosine.",
  ).register(setting, { unit: "steps" }),
  total_steps: z.int().positive().nullable().default(null).describe(
    "Total optimizer steps; required by linear and cosine.",
  ).register(setting, { unit: "steps" }),
  min_ratio: z.number().min(0).max(1).default(0).describe("Factor of lr at total_steps."),
});

const /** @internal */ optimizerSchema = z.strictObject({
  name: z.enum(["adamw", "adamw_8bit", "muon", "adafactor"]).default("adamw").describe(
    "adamw; adamw_8bit, whose moments have 8 bits; muon for the hidden matrices, with AdamW for " +
      "the rest; or adafactor.",
  ).register(setting, {
    numerics: false,
    fork: { fixed: "round_1", why: "optimizers cannot share their state" },
    resume: "refused",
  }),
  lr: z.number().positive().default(1e-6).describe("The learning rate."),
  betas: z.tuple([z.number(), z.number()]).default([0.9, 0.999]).describe(
    "AdamW's decay of its two moments.",
  ),
  eps: z.number().positive().default(1e-8).describe("Added to the root of the second moment."),
  weight_decay: z.number().nonnegative().default(0).describe(
    "Decoupled from the gradient, as in AdamW.",
  ).register(
    setting,
    {
      fork: {
        fixed: "round_1",
        why: "turning it on or off changes the layout of the optimizer's state",
        on_or_off: true,
      },
    },
  ),
  clip_grad_norm: z.number().positive().nullable().default(1).describe(
    "Gradients are scaled down to this norm; null: never.",
  ),
  schedule: Schedule.prefault({}).describe("How the learning rate changes over optimizer steps."),
}).register(setting, { numerics: false, fork: "free", resume: "refused" });
/** The optimizer, with its schedule and its clip. */
export type Optimizer = z.infer<typeof optimizerSchema>;
/** Schema of {@linkcode Optimizer}. */
export const Optimizer: typeof optimizerSchema = optimizerSchema;

/**
 * A model's head, if it is not a vocabulary. `value`: V after each token; `score`: one number for
 * the sequence.
 */
export const ModelHead = z.enum(["value", "score"]);
export type ModelHead = z.infer<typeof ModelHead>;

/**
 * What a policy version is: its id is the sha256 of this record, stored as an artifact, so that
 * versions form a chain like commits. The first version of a chain names a model directory by the
 * digest of its weights instead of a parent.
 */
export const VersionRecord = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("base"),
    model_digest: z.string(),
    optimizer: Optimizer,
    head: ModelHead.nullable(),
    lora: LoraShape.nullable().describe(
      "The adapter that is trained instead of the weights of model_digest.",
    ),
  }),
  z.strictObject({
    kind: z.literal("trained"),
    parent: z.string(),
    batch: ArtifactRef,
    loss: ArtifactRef.describe("The RecordedLoss, as canonical JSON."),
    optimizer: Optimizer,
    numerics: Numerics,
  }),
]);
export type VersionRecord = z.infer<typeof VersionRecord>;

const /** @internal */ policySchema = z.strictObject({
  version: z.string().describe("sha256 of the VersionRecord."),
  record: ArtifactRef,
  number: z.int().nonnegative().describe("Trained batches since the base."),
  model_path: z.string().describe("The base model's directory: architecture and tokenizer."),
});
/** A policy as it is passed between stages. */
export type Policy = z.infer<typeof policySchema>;
/** Schema of {@linkcode Policy}. */
export const Policy: typeof policySchema = policySchema;
