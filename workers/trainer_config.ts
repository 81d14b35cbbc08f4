import { z } from "zod";
import { Optimizer } from "../data/mod.ts";

/** The `trainer:` block. */
export const TrainerConfig = z.strictObject({
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
  updates_per_batch: z.int().positive().default(1).describe("Optimizer steps that a round's batch is cut into."),
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
export type TrainerConfig = z.infer<typeof TrainerConfig>;
