import { deepStrictEqual, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { leftOut, Numerics, recorded, recordedVersion, VersionRecord } from "../../data/mod.ts";
import { canonicalJson } from "../../engine/mod.ts";

const Inner = z.strictObject({ a: leftOut(z.int(), 7), b: z.string() });
const Outer = z.strictObject({
  name: z.string(),
  inner: Inner.nullable(),
  list: leftOut(z.array(z.int()), [1]),
  place: leftOut(z.strictObject({ x: z.int(), y: z.int() }), { x: 0, y: 0 }).describe(
    "A description makes a copy.",
  ),
});
const options = { noNullPrototype: true } as const;
const outers = fc.record({
  name: fc.string(),
  inner: fc.option(fc.record({ a: fc.integer({ min: 6, max: 8 }), b: fc.string() }, options)),
  list: fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 2 }),
  place: fc.record(
    { x: fc.integer({ min: 0, max: 1 }), y: fc.integer({ min: 0, max: 1 }) },
    options,
  ),
}, options);

Deno.test("recorded() leaves out what has its first value, at every depth, and reading restores it whole", () => {
  const plain = { name: "n", inner: { a: 7, b: "b" }, list: [1], place: { y: 0, x: 0 } };
  deepStrictEqual(recorded(Outer, plain), { name: "n", inner: { b: "b" } });
  fc.assert(fc.property(outers, (value) => {
    deepStrictEqual(Outer.parse(recorded(Outer, value)), value);
  }));
});

Deno.test("recorded() keeps what differs from the first value, whatever a setting's default is by now", () => {
  const value = { name: "n", inner: null, list: [], place: { x: 0, y: 1 } };
  deepStrictEqual(recorded(Outer, value), value);
});

/** Numerics as the first runs recorded them. */
const FIRST = {
  engine: "torch",
  zero: 0,
  world_size: 1,
  dtype: "float32",
  threads: 1,
  device: "cpu AVX2",
  packages: { torch: "2.13.0" },
  micro_batch_tokens_max: 4096,
};

Deno.test("the first records of numerics and versions read whole, and are written as they were", () => {
  const whole = Numerics.parse(FIRST);
  deepStrictEqual(whole, {
    ...FIRST,
    logits_chunk_tokens: 4096,
    packing: false,
    dropout: 0,
    attn_implementation: null,
    trust_remote_code: false,
    open_with_missing: false,
    lora: null,
    offload: { optimizer: false, parameters: false },
  });
  const optimizer = {
    lr: 1,
    betas: [0.9, 0.999],
    eps: 1e-8,
    weight_decay: 0,
    clip_grad_norm: 1,
  } as const;
  const schedule = { name: "constant", warmup_steps: 0, total_steps: null, min_ratio: 0 } as const;
  const ref = { sha256: "0".repeat(64), bytes: 1 };
  const records = [
    { kind: "base", model_digest: "d", optimizer: { ...optimizer, schedule } },
    {
      kind: "trained",
      parent: "p",
      batch: ref,
      loss: ref,
      optimizer: { ...optimizer, schedule },
      numerics: FIRST,
    },
  ];
  for (const record of records) {
    strictEqual(canonicalJson(recordedVersion(VersionRecord.parse(record))), canonicalJson(record));
  }
});
