import type { ModelHead } from "../data/mod.ts";
import { type EnvironmentKind, environmentKind } from "./environments.ts";
import { gpuEnv, type GpuPlace, onGpu } from "./gpus.ts";
import type { GroupSpec } from "./group.ts";
import type { SamplerConfig } from "./sampler_config.ts";
import { TrainerConfig } from "./trainer_config.ts";

type Device = TrainerConfig["device"];
/** What a group needs besides its block: the interpreter, the run's seed, its limits, and its GPUs (`placeGpus`). */
export type SpecOptions = {
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

/** What sets one trainer's group apart from another's: the policy's group is `trainer`, and ends in a vocabulary. */
export type TrainerGroupOptions = { group?: string; head?: ModelHead | null };

/** A trainer's group: what it is told is all that decides its numerics. */
export function trainerGroup(
  config: Omit<TrainerConfig, "optimizer">,
  { group = "trainer", head = null, ...options }: SpecOptions & TrainerGroupOptions,
): GroupSpec {
  const { engine, zero, dtype, gradient_checkpointing, threads, device, ranks } = config;
  const { python, seed, start_timeout_ms, no_progress_ms, gpus = null } = options;
  const unusual = unusualSpec(config, head);
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
    spec: { engine, zero, dtype, gradient_checkpointing, threads, device, seed, ...(head && { head }), ...unusual },
    start_timeout_ms,
    no_progress_ms,
  };
}

/** What a trainer is told only where it differs from the default: what older runs recorded of themselves stays so. */
function unusualSpec(
  { logits_chunk_tokens, packing, dropout, lora, offload }: Omit<TrainerConfig, "optimizer">,
  head: ModelHead | null,
): Record<string, unknown> {
  const unusual = offload.optimizer || offload.parameters ? { offload } : {};
  if (head === "value") return unusual; // It sees rows as they are, and is small beside its backbone: trained whole.
  return {
    ...unusual,
    ...(logits_chunk_tokens !== TrainerConfig.parse({}).logits_chunk_tokens && { logits_chunk_tokens }),
    ...(packing && { packing }),
    ...(dropout > 0 && { dropout }),
    ...(lora && { lora }),
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
    spec: { engine, dtype, threads, device, seed, max_model_len, kv_cache_gib, vllm },
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
