import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { MODEL_RULES } from "../../../configs/rules/model_rules.ts";
import type { Blocks } from "../../../configs/rules/rule_blocks.ts";
import { ModelOpening, SamplerConfig, TrainerConfig } from "../../../workers/mod.ts";

type Chosen = { kernels: string | null; trainer?: object; sampler?: object };

function messages({ kernels, trainer, sampler }: Chosen): string[] {
  const blocks: Blocks = {
    flow: "online",
    model: ModelOpening.parse({ attn_implementation: kernels }),
    ...(trainer && { trainer: TrainerConfig.parse(trainer) }),
    ...(sampler && { sampler: SamplerConfig.parse(sampler) }),
  };
  return MODEL_RULES.flatMap((rule) => rule(blocks)).map(({ path, message }) => {
    strictEqual(path.join("."), "model.attn_implementation");
    return message;
  });
}

Deno.test("packed rows have the kernels of packing, which are sdpa's", () => {
  const packed = { packing: true };
  deepStrictEqual(messages({ kernels: null, trainer: packed }), []);
  deepStrictEqual(messages({ kernels: "sdpa", trainer: packed }), []);
  deepStrictEqual(messages({ kernels: "eager", trainer: { packing: false } }), []);
  deepStrictEqual(messages({ kernels: "eager", trainer: packed }), [
    "is eager; packed rows are computed by sdpa: leave it out, or set trainer.packing: false",
  ]);
});

Deno.test("flash attention is for 16 bits on a GPU, wherever transformers opens the model", () => {
  const kernels = "flash_attention_2";
  const fits = { dtype: "bfloat16", device: "cuda" };
  deepStrictEqual(messages({ kernels, trainer: fits, sampler: fits }), []);
  const vllm = { engine: "vllm", dtype: "float32" };
  deepStrictEqual(messages({ kernels, trainer: fits, sampler: vllm }), []);
  deepStrictEqual(messages({ kernels, trainer: fits, sampler: { dtype: "float32" } }), [
    "is flash_attention_2, which computes 16 bits on a GPU: set sampler.dtype: bfloat16",
  ]);
  deepStrictEqual(messages({ kernels, trainer: { dtype: "bfloat16", device: "cpu" } }), [
    "is flash_attention_2, which computes 16 bits on a GPU: set trainer.device: cuda",
  ]);
});
