import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { declaredFacts, Sampling } from "../../data/mod.ts";
import { SamplerConfig } from "../../workers/mod.ts";
import { SamplerProcess } from "../../workers/sampler_config.ts";
import { undescribed } from "./environments/undescribed.ts";

Deno.test("SamplerConfig describes every field", () => {
  deepStrictEqual(undescribed(SamplerConfig), []);
});

Deno.test("SamplerConfig joins the process's settings, the sampling's and the group's", () => {
  const parts = [...Object.keys(SamplerProcess.shape), ...Object.keys(Sampling.shape)];
  deepStrictEqual(Object.keys(SamplerConfig.shape).filter((name) => !parts.includes(name)), [
    "replicas",
    "devices",
    "python",
  ]);
  strictEqual(new Set(parts).size, parts.length); // None hides another's.
});

Deno.test("SamplerConfig: a resume may change how many samplers there are and where", () => {
  const free = Object.entries(SamplerConfig.shape).flatMap(([name, field]) =>
    declaredFacts(field).resume === "workers" ? [name] : []
  );
  deepStrictEqual(free, ["kv_cache_gib", "replicas", "devices"]);
});

Deno.test("SamplerConfig passes engine arguments of vLLM on as they are", () => {
  const vllm = { gpu_memory_utilization: 0.5, enforce_eager: true };
  deepStrictEqual(SamplerConfig.parse({ vllm }).vllm, vllm);
  strictEqual(SamplerConfig.safeParse({ enforce_eager: true }).success, false);
});
