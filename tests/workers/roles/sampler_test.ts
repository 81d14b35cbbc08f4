import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { SamplerConfig, samplerGroup } from "../../../workers/mod.ts";

Deno.test("samplerGroup() names replicas and passes vLLM's cache and the length limit on", () => {
  const config = SamplerConfig.parse({
    engine: "vllm",
    kv_cache_gib: 0.5,
    max_model_len: 512,
    vllm: { enforce_eager: true },
  });
  const group = samplerGroup(config, { seed: 5, replica: 1 });
  deepStrictEqual([group.group, group.ranks], ["sampler/1", 1]);
  deepStrictEqual(group.spec, {
    engine: "vllm",
    dtype: "float32",
    threads: 1,
    device: "auto",
    seed: 5,
    max_model_len: 512,
    kv_cache_gib: 0.5,
    vllm: { enforce_eager: true },
    attn_implementation: null,
    trust_remote_code: false,
    open_with_missing: false,
    open_with_unexpected: false,
  });
});

Deno.test("samplerGroup() asks for one GPU, or for as many as vLLM computes on", () => {
  const count = (config: object) =>
    samplerGroup(SamplerConfig.parse(config), { seed: 5, replica: 0 }).gpus!.count;
  strictEqual(count({ vllm: { tensor_parallel_size: 2 } }), 1);
  strictEqual(
    count({ engine: "vllm", vllm: { tensor_parallel_size: 2, pipeline_parallel_size: 3 } }),
    6,
  );
});
