import { z } from "zod";
import { Optimizer, Sampling } from "../data/mod.ts";

/** Stand-ins until the workers' and algorithms' own schemas exist; then this file goes. */
export const TrainerConfig = z.strictObject({
  engine: z.enum(["torch", "deepspeed"]).default("torch").describe("Who runs the training step."),
  ranks: z.int().positive().default(1).describe("Processes of the trainer."),
  zero: z.int().min(0).max(3).default(0).describe("DeepSpeed's ZeRO stage."),
  dtype: z.enum(["float32", "bfloat16"]).default("float32").describe("Type of the weights and activations."),
  device: z.enum(["auto", "cpu", "cuda"]).default("auto").describe("Where tensors live."),
  threads: z.int().positive().default(1).describe("CPU threads of each rank."),
  gradient_checkpointing: z.boolean().default(false).describe("Recompute activations instead of keeping them."),
  micro_batch_tokens_max: z.int().positive().default(4096).describe(
    "Tokens, padding too, that one micro-batch may hold.",
  ),
  updates_per_batch: z.int().positive().default(1).describe("Optimizer steps that a round's batch is cut into."),
  optimizer: Optimizer.prefault({}).describe("AdamW and its learning rate."),
  python: z.string().nullable().default(null).describe("A Python of your own; null: a managed environment."),
});
export type TrainerConfig = z.infer<typeof TrainerConfig>;

export const SamplerConfig = z.strictObject({
  engine: z.enum(["huggingface", "vllm"]).default("huggingface").describe("Who generates."),
  replicas: z.int().positive().default(1).describe("Samplers; each holds the whole model."),
  dtype: z.enum(["float32", "bfloat16"]).default("float32").describe("Type of the weights and activations."),
  device: z.enum(["auto", "cpu", "cuda"]).default("auto").describe("Where tensors live."),
  threads: z.int().positive().default(1).describe("CPU threads of each sampler."),
  ...Sampling.shape,
  max_model_len: z.int().positive().nullable().default(null).describe(
    "Tokens that a sequence may have, the prompt's too; null: the model's own limit.",
  ),
  vllm: z.record(z.string(), z.unknown()).default({}).describe("Further engine arguments of vLLM, by its own names."),
  python: z.string().nullable().default(null).describe("A Python of your own; null: a managed environment."),
});
export type SamplerConfig = z.infer<typeof SamplerConfig>;

export const WorkersConfig = z.strictObject({
  grace_s: z.number().nonnegative().default(30).describe("Seconds that workers wait for an engine that is gone."),
});
export type WorkersConfig = z.infer<typeof WorkersConfig>;

export const GrpoConfig = z.strictObject({
  clip_low: z.number().positive().default(0.2).describe("The ratio stays above 1 - clip_low."),
  clip_high: z.number().positive().default(0.2).describe("The ratio stays below 1 + clip_high."),
  kl_coef: z.number().nonnegative().default(0).describe("Weight of the KL to the reference policy."),
  std_epsilon: z.number().positive().default(1e-6).describe("Added to a group's standard deviation."),
});
export const SftConfig = z.strictObject({});
