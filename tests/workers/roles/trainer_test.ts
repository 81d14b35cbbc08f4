import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { PLAIN_NUMERICS } from "../../../data/mod.ts";
import { TrainerConfig, trainerGroup } from "../../../workers/mod.ts";

Deno.test("trainerGroup() trains a value model whole and padded, whatever the policy's", () => {
  const config = TrainerConfig.parse({
    logits_chunk_tokens: null,
    packing: true,
    dropout: 0.1,
    lora: { rank: 4 },
    offload: { optimizer: true },
  });
  const { spec } = trainerGroup(config, { seed: 5, group: "critic", head: "value" });
  const { logits_chunk_tokens, packing, dropout, lora, offload } = spec;
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
  const group = trainerGroup(config, { seed: 5 });
  deepStrictEqual([group.group, group.ranks, group.environment], ["trainer", 2, "deepspeed_cpu"]);
  deepStrictEqual(group.spec, {
    engine: "deepspeed",
    zero: 2,
    dtype: "bfloat16",
    ema_decay: null,
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
    attn_implementation: null,
    trust_remote_code: false,
    open_with_missing: false,
    open_with_unexpected: false,
  });
  deepStrictEqual([group.env!.OMP_NUM_THREADS, group.env!.DS_ACCELERATOR], ["2", "cpu"]);
  strictEqual(group.env!.OMP_WAIT_POLICY, "PASSIVE");
  strictEqual(
    trainerGroup({ ...config, device: "cuda" }, { seed: 5 }).env!.DS_ACCELERATOR,
    undefined,
  );
});
