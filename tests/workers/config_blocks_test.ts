import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { PLAIN_NUMERICS } from "../../data/mod.ts";
import {
  environmentKind,
  environmentOf,
  SamplerConfig,
  samplerGroup,
  TrainerConfig,
  trainerGroup,
  type TrainerSpec,
  WorkersConfig,
} from "../../workers/mod.ts";

Deno.test("TrainerConfig, SamplerConfig and WorkersConfig describe every field and have a default for each", () => {
  for (const schema of [TrainerConfig, SamplerConfig, WorkersConfig]) {
    schema.parse({});
    const { properties } = z.toJSONSchema(schema, { io: "input" }) as {
      properties: Record<string, { description?: string }>;
    };
    const mute = Object.entries(properties).filter(([, field]) => !field.description).map(([name]) => name);
    deepStrictEqual(mute, []);
  }
});

Deno.test("WorkersConfig: workers wait 30 s for a lost engine, and the hub listens on loopback", () => {
  deepStrictEqual(WorkersConfig.parse({}), {
    grace_s: 30,
    silent_s: 5,
    start_timeout_s: 300,
    no_progress_s: 600,
    preempt_grace_s: 25,
    host: "127.0.0.1",
    port: 0,
    interface: null,
  });
});

Deno.test("trainerGroup() trains a value model whole and padded, whatever the policy's settings say", () => {
  const config = TrainerConfig.parse({
    ...{ logits_chunk_tokens: null, packing: true, dropout: 0.1, lora: { rank: 4 } },
    offload: { optimizer: true },
  });
  const { spec } = trainerGroup(config, { python: "py", seed: 5, group: "critic", head: "value" });
  const { logits_chunk_tokens, packing, dropout, lora, offload } = spec as TrainerSpec;
  deepStrictEqual({ logits_chunk_tokens, packing, dropout, lora }, PLAIN_NUMERICS);
  deepStrictEqual(offload, config.offload);
});

Deno.test("trainerGroup() hands the ranks what decides the numerics, and no more", () => {
  const config = TrainerConfig.parse({
    engine: "deepspeed",
    ranks: 2,
    zero: 2,
    dtype: "bfloat16",
    threads: 2,
    device: "cpu",
  });
  const group = trainerGroup(config, { python: "py", seed: 5 });
  deepStrictEqual([group.group, group.ranks, group.module], ["trainer", 2, "holdfast_worker.trainer.worker"]);
  deepStrictEqual(group.spec, {
    engine: "deepspeed",
    zero: 2,
    dtype: "bfloat16",
    gradient_checkpointing: false,
    threads: 2,
    device: "cpu",
    seed: 5,
    head: null,
    offload: { optimizer: false, parameters: false },
    logits_chunk_tokens: 4096,
    packing: false,
    dropout: 0,
    lora: null,
  });
  deepStrictEqual([group.env!.OMP_NUM_THREADS, group.env!.DS_ACCELERATOR], ["2", "cpu"]);
  strictEqual(group.env!.OMP_WAIT_POLICY, "PASSIVE");
  strictEqual(trainerGroup({ ...config, device: "cuda" }, { python: "py", seed: 5 }).env!.DS_ACCELERATOR, undefined);
});

Deno.test("samplerGroup() names replicas and passes vLLM's cache and the length limit on", () => {
  const config = SamplerConfig.parse({
    engine: "vllm",
    kv_cache_gib: 0.5,
    max_model_len: 512,
    vllm: { enforce_eager: true },
  });
  const group = samplerGroup(config, { python: "py", seed: 5, replica: 1 });
  deepStrictEqual([group.group, group.role, group.ranks], ["sampler/1", "sampler", 1]);
  deepStrictEqual(group.spec, {
    engine: "vllm",
    dtype: "float32",
    threads: 1,
    device: "auto",
    seed: 5,
    max_model_len: 512,
    kv_cache_gib: 0.5,
    vllm: { enforce_eager: true },
  });
});

Deno.test("environmentOf() picks the packages by engine and device", () => {
  deepStrictEqual(
    [
      environmentOf({ engine: "torch", device: "cpu" }),
      environmentOf({ engine: "deepspeed", device: "cuda" }),
      environmentOf({ engine: "huggingface", device: "cpu" }),
      environmentOf({ engine: "vllm", device: "cpu" }),
      environmentOf({ engine: "vllm", device: "cuda" }),
      environmentKind("vllm", false),
    ],
    ["torch_cpu", "deepspeed_cuda", "torch_cpu", "vllm_cpu", "vllm_cuda", "vllm_cpu"],
  );
});
