import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { Numerics, Optimizer, PLAIN_NUMERICS, recordedVersion, stepCut } from "../../data/mod.ts";
import { VersionRecord } from "../../data/policy.ts";

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
const artifact = { sha256: "a".repeat(64), bytes: 3 };
const trained = (numerics: object) =>
  VersionRecord.parse({
    kind: "trained",
    parent: "p",
    batch: artifact,
    loss: artifact,
    optimizer: Optimizer.parse({}),
    numerics,
  });

Deno.test("recordedVersion() writes numerics of the first kind as they were first written", () => {
  const record = recordedVersion(trained(first));
  deepStrictEqual(record.kind === "trained" && record.numerics, first);
});

Deno.test("recordedVersion() writes numerics that differ, and reading restores all", () => {
  const version = trained({ ...first, packing: true, dropout: 0.1 });
  const record = recordedVersion(version);
  deepStrictEqual(record.kind === "trained" && record.numerics, {
    ...first,
    packing: true,
    dropout: 0.1,
  });
  deepStrictEqual(VersionRecord.parse(record), version);
});

Deno.test("PLAIN_NUMERICS is what absence means, and stepCut() takes its part of the step", () => {
  const { logits_chunk_tokens, packing, dropout, lora } = Numerics.parse(first);
  deepStrictEqual(PLAIN_NUMERICS, { logits_chunk_tokens, packing, dropout, lora });
  deepStrictEqual(stepCut(Numerics.parse(first)), { logits_chunk_tokens, packing });
});

Deno.test("Optimizer refuses a learning rate of 0 and a negative decay", () => {
  strictEqual(Optimizer.safeParse({ lr: 0 }).success, false);
  strictEqual(Optimizer.safeParse({ weight_decay: -0.1 }).success, false);
  strictEqual(Optimizer.safeParse({ clip_grad_norm: null }).success, true);
});
