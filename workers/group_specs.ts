import { z } from "zod";
import { ModelHead, PLAIN_NUMERICS } from "../data/mod.ts";
import { type EnvironmentKind, environmentKind } from "./environments.ts";
import { gpuEnv, type GpuPlace, onGpu } from "./gpus.ts";
import type { GroupSpec } from "./group.ts";
import { SamplerConfig } from "./sampler_config.ts";
import { TrainerConfig } from "./trainer_config.ts";

const { engine, zero, dtype, gradient_checkpointing, threads, device, offload, ...trainer } = TrainerConfig.shape;
const { logits_chunk_tokens, packing, dropout, lora } = trainer;

/** What the ranks of a trainer are started with. */
export const TrainerSpec = z.strictObject({
  ...{ engine, zero, dtype, gradient_checkpointing, threads, device, offload },
  ...{ logits_chunk_tokens, packing, dropout, lora },
  seed: z.int(),
  head: ModelHead.nullable(),
});
export type TrainerSpec = z.infer<typeof TrainerSpec>;

const sampler = SamplerConfig.shape;

/** What a sampler is started with. */
export const SamplerSpec = z.strictObject({
  ...{ engine: sampler.engine, dtype: sampler.dtype, threads: sampler.threads, device: sampler.device },
  ...{ max_model_len: sampler.max_model_len, kv_cache_gib: sampler.kv_cache_gib, vllm: sampler.vllm },
  seed: z.int(),
});
export type SamplerSpec = z.infer<typeof SamplerSpec>;

/** What the reward worker is started with. */
export const RewardSpec = z.strictObject({
  processes: z.int().positive().describe("Processes that score at once."),
});
export type RewardSpec = z.infer<typeof RewardSpec>;

type Device = TrainerConfig["device"];
/**
 * What a group needs besides its block: the interpreter, the run's seed, its limits, and its GPUs
 * (`placeGpus`).
 */
type SpecOptions = {
  python: string;
  seed: number;
  start_timeout_ms?: number;
  no_progress_ms?: number;
  gpus?: GpuPlace | null;
};

/** The environment that a trainer's or sampler's processes run in. */
export function environmentOf(
  block: { engine: TrainerConfig["engine"] | SamplerConfig["engine"]; device: Device },
): EnvironmentKind {
  return environmentKind(block.engine, onGpu(block.device));
}

/**
 * What sets one trainer's group apart from another's: the policy's group is `trainer`, and ends in
 * a vocabulary.
 */
type TrainerGroupOptions = { group?: string; head?: ModelHead | null };

/**
 * A trainer's group. Its spec is whole: nothing that decides its numerics is left to a default of
 * the worker.
 */
export function trainerGroup(
  config: Omit<TrainerConfig, "optimizer">,
  { group = "trainer", head = null, ...options }: SpecOptions & TrainerGroupOptions,
): GroupSpec {
  const { python, seed, start_timeout_ms, no_progress_ms, gpus = null } = options;
  // A value model sees rows as they are, and is small beside its backbone: trained whole.
  const { engine, zero, dtype, gradient_checkpointing, threads, device, ranks, ...block } = head === "value"
    ? { ...config, ...PLAIN_NUMERICS }
    : config;
  const { offload, logits_chunk_tokens, packing, dropout, lora } = block;
  return {
    group,
    role: "trainer",
    ranks,
    python,
    module: "holdfast_worker.trainer.worker",
    env: {
      ...threadsEnv(threads),
      ...gpuEnv(device, gpus),
      ...(onGpu(device) ? {} : { DS_ACCELERATOR: "cpu" }),
    },
    spec: {
      ...{ engine, zero, dtype, gradient_checkpointing, threads, device, seed, head },
      ...{ offload, logits_chunk_tokens, packing, dropout, lora },
    } satisfies TrainerSpec,
    start_timeout_ms,
    no_progress_ms,
  };
}

/** One sampler's group. */
export function samplerGroup(config: SamplerConfig, options: SpecOptions & { replica: number }): GroupSpec {
  const { engine, dtype, threads, device, max_model_len, kv_cache_gib, vllm } = config;
  const { python, seed, replica, start_timeout_ms, no_progress_ms, gpus = null } = options;
  return {
    group: `sampler/${replica}`,
    role: "sampler",
    ranks: 1,
    python,
    module: "holdfast_worker.sampler.worker",
    env: { ...threadsEnv(threads), ...gpuEnv(device, gpus) },
    spec: { engine, dtype, threads, device, seed, max_model_len, kv_cache_gib, vllm } satisfies SamplerSpec,
    start_timeout_ms,
    no_progress_ms,
  };
}

/**
 * Threads that wait must not spin: workers share their cores with each other and with whatever else runs. With two threads on
 * two busy cores, spinning made vLLM up to six times slower.
 */
function threadsEnv(threads: number): Record<string, string> {
  const count = String(threads);
  return {
    OMP_NUM_THREADS: count,
    MKL_NUM_THREADS: count,
    OMP_WAIT_POLICY: "PASSIVE",
    TOKENIZERS_PARALLELISM: "false",
  };
}
