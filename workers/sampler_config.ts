import { z } from "zod";
import { Sampling, setting } from "../data/mod.ts";

/** The settings that a sampler is started with. */
export const SamplerProcess = z.strictObject({
  engine: z.enum(["huggingface", "vllm"]).default("huggingface").describe(
    "The engine that generates.",
  ),
  dtype: z.enum(["float32", "bfloat16", "float16"]).default("float32").describe(
    "Data type of the weights and activations.",
  ),
  threads: z.int().positive().default(1).describe("CPU threads of each sampler.").register(
    setting,
    { unit: "threads" },
  ),
  device: z.enum(["auto", "cpu", "cuda"]).default("auto").describe(
    "Where tensors live; auto: a GPU if there is one.",
  ),
  max_model_len: z.int().positive().nullable().default(null).describe(
    "Maximum tokens per sequence, including the prompt; null: the model's limit.",
  ).register(setting, { unit: "tokens" }),
  kv_cache_gib: z.number().positive().nullable().default(null).describe(
    "GiB of vLLM's key-value cache; null: 1 on CPU, a fifth of a shared GPU, all that vLLM " +
      "finds free on a dedicated GPU.",
  ).register(setting, { unit: "GiB", resume: "workers" }),
  vllm: z.record(z.string(), z.unknown()).default({}).describe(
    "Further engine arguments of vLLM, by their vLLM names (gpu_memory_utilization, " +
      "enforce_eager, ...).",
  ),
});

const /** @internal */ samplerConfigSchema = z.strictObject({
  ...SamplerProcess.shape,
  replicas: z.int().positive().max(1024).default(1).describe(
    "Number of samplers; each holds the whole model.",
  ).register(setting, { unit: "processes", resume: "workers" }),
  ...Sampling.shape,
  devices: z.array(z.int().nonnegative()).min(1).nullable().default(null).describe(
    "GPUs of the samplers, numbered like the trainer's; null: those the trainer does not " +
      "use, or else the trainer's, shared.",
  ).register(setting, { resume: "workers" }),
  python: z.string().min(1).nullable().default(null).describe(
    "Interpreter of a custom environment, which Holdfast checks but never changes; null: a " +
      "managed environment.",
  ),
}).register(setting, { numerics: false, fork: "free", resume: "refused" });
/** The `sampler:` block: the worker groups that generate, and how tokens are drawn. */
export type SamplerConfig = z.infer<typeof samplerConfigSchema>;
/** Schema of {@linkcode SamplerConfig}. */
export const SamplerConfig: typeof samplerConfigSchema = samplerConfigSchema;
