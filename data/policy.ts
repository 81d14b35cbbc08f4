import { z } from "zod";
import { ArtifactRef } from "./artifact_ref.ts";

/** Low-rank adapters in place of all weights: what they are made by, and what they compute. */
export const LoraShape = z.strictObject({
  rank: z.int().positive(),
  alpha: z.number(),
  dropout: z.number(),
  targets: z.union([z.string(), z.array(z.string())]),
  quantize: z.string().nullable(),
  seed: z.int().describe("Of the matrices that do not begin as zero."),
});
export type LoraShape = z.infer<typeof LoraShape>;

/** How the rows of a step meet the model. A redo is told what was recorded, not what is configured by now. */
export const StepCut = z.strictObject({
  logits_chunk_tokens: z.int().positive().nullable().optional().describe("Left out: 4096. null: never in chunks."),
  packing: z.literal(true).optional().describe(
    "Sequences stand one after the other in a row, a group's common beginning once. Left out: they are padded.",
  ),
});
export type StepCut = z.infer<typeof StepCut>;

/** Everything that can change the bits of an optimizer step. What is optional is left out at its default. */
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
  dropout: z.number().optional(),
  lora: LoraShape.optional(),
  offload: z.strictObject({ optimizer: z.boolean(), parameters: z.boolean() }).optional(),
});
export type Numerics = z.infer<typeof Numerics>;

/** The part of numerics that an operation is told. */
export function stepCut({ logits_chunk_tokens, packing }: StepCut): StepCut {
  return { ...(logits_chunk_tokens !== undefined && { logits_chunk_tokens }), ...(packing && { packing }) };
}

/** Learning rate over optimizer steps: lr * factor(step). */
export const Schedule = z.strictObject({
  name: z.enum(["constant", "linear", "cosine"]).default("constant").describe("Its shape after the warm-up."),
  warmup_steps: z.int().nonnegative().default(0).describe("Optimizer steps over which the rate rises from 0 to lr."),
  total_steps: z.int().positive().nullable().default(null).describe("Needed by linear and cosine."),
  min_ratio: z.number().min(0).max(1).default(0).describe("The factor at total_steps."),
});

const /** @internal */ optimizerSchema = z.strictObject({
  lr: z.number().positive().default(1e-6).describe("The learning rate."),
  betas: z.tuple([z.number(), z.number()]).default([0.9, 0.999]).describe("AdamW's decay of its two moments."),
  eps: z.number().positive().default(1e-8).describe("Added to the root of the second moment."),
  weight_decay: z.number().nonnegative().default(0).describe("Decoupled from the gradient, as in AdamW."),
  clip_grad_norm: z.number().positive().nullable().default(1).describe(
    "Gradients are scaled down to this norm; null: never.",
  ),
  schedule: Schedule.prefault({}).describe("How the learning rate changes over optimizer steps."),
});
/** AdamW, with the schedule and the clip that belong to it. */
export type Optimizer = z.infer<typeof optimizerSchema>;
/** Schema of {@linkcode Optimizer}. */
export const Optimizer: typeof optimizerSchema = optimizerSchema;

/** What a model ends in, if not in a vocabulary: `value`: V after each token; `score`: one number for the sequence. */
export const ModelHead = z.enum(["value", "score"]);
export type ModelHead = z.infer<typeof ModelHead>;

/**
 * What a policy version is: its id is the sha256 of this record, stored as an artifact, so that versions form a chain
 * like commits. The first version of a chain names a model directory by the digest of its weights instead of a parent.
 */
export const VersionRecord = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("base"),
    model_digest: z.string(),
    optimizer: Optimizer,
    head: ModelHead.optional(),
    lora: LoraShape.optional().describe("What is trained in place of the weights that model_digest names."),
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
/** A policy as it travels between stages. */
export type Policy = z.infer<typeof policySchema>;
/** Schema of {@linkcode Policy}. */
export const Policy: typeof policySchema = policySchema;
