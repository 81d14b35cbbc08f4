import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { Numerics, Optimizer, PLAIN_NUMERICS, stepCut } from "../../data/mod.ts";

const first = {
  engine: "torch",
  zero: 0,
  world_size: 1,
  dtype: "float32",
  threads: 1,
  device: "cpu",
  packages: {},
  micro_batch_tokens_max: 512,
};

Deno.test("PLAIN_NUMERICS are numerics, and stepCut() takes its part of the step", () => {
  const others = {
    offload: { optimizer: false, parameters: false },
    attn_implementation: null,
    trust_remote_code: false,
    open_with_missing: false,
  };
  const numerics = Numerics.parse({ ...first, ...others, ...PLAIN_NUMERICS });
  deepStrictEqual(stepCut(numerics), { logits_chunk_tokens: 4096, packing: false });
});

Deno.test("Optimizer refuses a learning rate of 0 and a negative decay", () => {
  strictEqual(Optimizer.safeParse({ lr: 0 }).success, false);
  strictEqual(Optimizer.safeParse({ weight_decay: -0.1 }).success, false);
  strictEqual(Optimizer.safeParse({ clip_grad_norm: null }).success, true);
});
