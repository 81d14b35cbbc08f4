import { z } from "zod";
import { mayChange, Optimizer } from "../data/mod.ts";

/** Low-rank adapters, trained in place of the weights. */
export const Lora = z.strictObject({
  rank: z.int().positive().max(1024).default(16).describe("Inner size of each adapter's two matrices."),
  alpha: z.number().positive().default(32).describe("The adapter's product is scaled by alpha / rank."),
  dropout: z.number().min(0).lt(1).default(0).describe("Of the adapters' inputs; only in supervised training."),
  targets: z.union([z.literal("all_linear"), z.array(z.string().min(1)).min(1)]).default("all_linear").describe(
    "Linear layers that get one, by the end of their names; all_linear: all but the output head.",
  ),
  quantize: z.enum(["nf4"]).nullable().default(null).describe(
    "nf4: the frozen weights lie in 4 bits (QLoRA); needs bitsandbytes. null: as they are.",
  ),
  publish: z.enum(["merged", "adapter"]).default("merged").describe(
    "What samplers get and a run ends with: merged into a plain model directory, or a PEFT directory beside the base model.",
  ),
});
export type Lora = z.infer<typeof Lora>;

/** What lies in the host's memory while the GPU does not need it. */
export const Offload = z.strictObject({
  optimizer: z.boolean().default(false).describe(
    "Float32 weights and AdamW's moments, and the step on the CPU; ZeRO 1 to 3.",
  ),
  parameters: z.boolean().default(false).describe("The weights, fetched layer by layer; ZeRO 3."),
});

const /** @internal */ trainerConfigSchema = z.strictObject({
  engine: z.enum(["torch", "deepspeed"]).default("torch").describe(
    "Who runs the training step. torch: one process; deepspeed: any number of ranks.",
  ),
  ranks: z.int().positive().max(1024).default(1).describe("Processes of the trainer."),
  zero: z.int().min(0).max(3).default(0).describe(
    "DeepSpeed's ZeRO stage: what is sharded over the ranks (1: optimizer, 2: gradients too, 3: weights too).",
  ),
  dtype: z.enum(["float32", "bfloat16"]).default("float32").describe("Type of the weights and activations."),
  micro_batch_tokens_max: z.int().positive().default(4096).describe(
    "Tokens, padding too, that one micro-batch may hold. The gradient does not depend on it, memory does.",
  ),
  logits_chunk_tokens: z.int().positive().nullable().default(4096).describe(
    "Trained tokens whose logits are in memory at once; more are computed chunk by chunk, and again in the backward. null: all at once.",
  ),
  packing: z.boolean().default(false).describe(
    "Sequences one after the other in a row instead of padded rows, and what a group's begin with once. None sees another.",
  ),
  dropout: z.number().min(0).lt(1).default(0).describe(
    "Supervised training: every dropout of the model. Elsewhere it is off, as log-probabilities must not depend on chance.",
  ),
  lora: Lora.nullable().default(null).describe(
    "Train low-rank adapters (PEFT) and leave the model's weights as they are; null: train all.",
  ),
  offload: Offload.prefault({}).describe("DeepSpeed's offload to the CPU."),
  non_finite_max: z.int().positive().default(3).describe(
    "A step whose loss or gradient norm is not finite is skipped and counted; so many in a row fail the run.",
  ).register(mayChange, { read_by: "workers" }),
  updates_per_batch: z.int().positive().default(1).describe("Optimizer steps that a round's batch is cut into."),
  epochs_per_batch: z.int().positive().default(1).describe(
    "How often a round's batch is gone through: the first time in draw order, then in orders that follow from the seed.",
  ),
  optimizer: Optimizer.prefault({}).describe("AdamW, its schedule and its clip."),
  gradient_checkpointing: z.boolean().default(false).describe("Recompute activations instead of keeping them."),
  threads: z.int().positive().default(1).describe("CPU threads of each rank. Part of the numerics."),
  device: z.enum(["auto", "cpu", "cuda"]).default("auto").describe("Where tensors live; auto: a GPU if there is one."),
  devices: z.array(z.int().nonnegative()).min(1).nullable().default(null).describe(
    "GPUs of the ranks, one each: places in CUDA_VISIBLE_DEVICES, or numbers as in nvidia-smi where that is not set; null: the first ones.",
  ),
  python: z.string().min(1).nullable().default(null).describe(
    "Interpreter of an environment of your own, which is only checked; null: a managed one.",
  ),
});
/** The `trainer:` block. */
export type TrainerConfig = z.infer<typeof trainerConfigSchema>;
/** Schema of {@linkcode TrainerConfig}. */
export const TrainerConfig: typeof trainerConfigSchema = trainerConfigSchema;
