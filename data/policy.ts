import { z } from "zod";
import { ArtifactRef } from "./artifact_ref.ts";

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
});
export type Numerics = z.infer<typeof Numerics>;

/** Learning rate over optimizer steps: lr * factor(step). */
export const Schedule = z.strictObject({
  name: z.enum(["constant", "linear", "cosine"]).default("constant").describe("Its shape after the warm-up."),
  warmup_steps: z.int().nonnegative().default(0).describe("Optimizer steps over which the rate rises from 0 to lr."),
  total_steps: z.int().positive().nullable().default(null).describe("Needed by linear and cosine."),
  min_ratio: z.number().min(0).max(1).default(0).describe("The factor at total_steps."),
});

/** AdamW, with the schedule and the clip that belong to it. */
export const Optimizer = z.strictObject({
  lr: z.number().positive().default(1e-6).describe("The learning rate."),
  betas: z.tuple([z.number(), z.number()]).default([0.9, 0.999]).describe("AdamW's decay of its two moments."),
  eps: z.number().positive().default(1e-8).describe("Added to the root of the second moment."),
  weight_decay: z.number().nonnegative().default(0).describe("Decoupled from the gradient, as in AdamW."),
  clip_grad_norm: z.number().positive().nullable().default(1).describe(
    "Gradients are scaled down to this norm; null: never.",
  ),
  schedule: Schedule.prefault({}).describe("How the learning rate changes over optimizer steps."),
});
export type Optimizer = z.infer<typeof Optimizer>;

/**
 * What a policy version is: its id is the sha256 of this record, stored as an artifact, so that versions form a chain
 * like commits. The first version of a chain names a model directory by the digest of its weights instead of a parent.
 */
export const VersionRecord = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("base"), model_digest: z.string(), optimizer: Optimizer }),
  z.strictObject({
    kind: z.literal("trained"),
    parent: z.string(),
    batch: ArtifactRef,
    loss: ArtifactRef.describe("The expression, as canonical JSON."),
    optimizer: Optimizer,
    numerics: Numerics,
  }),
]);
export type VersionRecord = z.infer<typeof VersionRecord>;

/** A policy as it travels between stages. */
export const Policy = z.strictObject({
  version: z.string().describe("sha256 of the VersionRecord."),
  record: ArtifactRef,
  number: z.int().nonnegative().describe("Trained batches since the base."),
  model_path: z.string().describe("The base model's directory: architecture and tokenizer."),
});
export type Policy = z.infer<typeof Policy>;
