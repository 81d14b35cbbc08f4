import { z } from "zod";
import { mayChange, Sampling } from "../data/mod.ts";

const /** @internal */ samplerConfigSchema = z.strictObject({
  engine: z.enum(["huggingface", "vllm"]).default("huggingface").describe("Who generates."),
  replicas: z.int().positive().max(1024).default(1).describe("Samplers; each holds the whole model.")
    .register(mayChange, { read_by: "workers" }),
  ...Sampling.shape,
  dtype: z.enum(["float32", "bfloat16"]).default("float32").describe("Type of the weights and activations."),
  threads: z.int().positive().default(1).describe("CPU threads of each sampler."),
  device: z.enum(["auto", "cpu", "cuda"]).default("auto").describe("Where tensors live; auto: a GPU if there is one."),
  max_model_len: z.int().positive().nullable().default(null).describe(
    "Tokens that a sequence may have, the prompt's too; null: the model's own limit.",
  ),
  kv_cache_gib: z.number().positive().nullable().default(null).describe(
    "GiB of vLLM's key-value cache; null: 1 on CPU, a fifth of a GPU that is shared, what vLLM finds free on a GPU of its own.",
  ).register(mayChange, { read_by: "workers" }),
  vllm: z.record(z.string(), z.unknown()).default({}).describe(
    "Further engine arguments of vLLM, by its own names (gpu_memory_utilization, enforce_eager, ...).",
  ),
  devices: z.array(z.int().nonnegative()).min(1).nullable().default(null).describe(
    "GPUs of the samplers, counted as the trainer's; null: those that the trainer leaves, else the trainer's, shared.",
  ).register(mayChange, { read_by: "workers" }),
  python: z.string().min(1).nullable().default(null).describe(
    "Interpreter of an environment of your own, which is only checked; null: a managed one.",
  ),
});
/** The `sampler:` block: the worker groups that generate, and how tokens are drawn. */
export type SamplerConfig = z.infer<typeof samplerConfigSchema>;
/** Schema of {@linkcode SamplerConfig}. */
export const SamplerConfig: typeof samplerConfigSchema = samplerConfigSchema;
