import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { InvalidInputError, type NewRow } from "../../../engine/mod.ts";
import type { Replan } from "../../../workers/mod.ts";
import {
  plannedBlocks,
  replannedBlocks,
  workerBlocks,
} from "../../../runs/session/worker_blocks.ts";

const TRAINER = { engine: "torch", ranks: 1, zero: 0, dtype: "float32" };

function replan(field: Replan["field"], to: number, round: number | null = null): Replan {
  return { round, cause: "asked", field, from: null, to };
}

function rowOf(note: Replan): NewRow {
  return { kind: "note/replan", key: "resume", value: JSON.stringify(note) };
}

Deno.test("workerBlocks() gives a setting that is left out its default", () => {
  const recorded = { ...TRAINER, mine: 7 };
  const blocks = workerBlocks({ trainer: recorded, sampler: { engine: "huggingface" }, seed: 3 })!;
  const { offload, packing, ...trainer } = blocks.trainer;
  deepStrictEqual([offload, packing], [{ optimizer: false, parameters: false }, false]);
  deepStrictEqual({ ...trainer, ...recorded }, trainer, "settings it does not know stay");
  deepStrictEqual([blocks.sampler.replicas, blocks.seed], [1, 3]);
});

Deno.test("a model with unexpected tensors is refused unless its block opens it, in a custom graph too", () => {
  const opens = (config: object) =>
    workerBlocks({ trainer: TRAINER, ...config })!.model!.open_with_unexpected;
  strictEqual(opens({ flow: "online", model: { path: "m" } }), false);
  strictEqual(opens({ flow: "online", model: { path: "m", open_with_unexpected: true } }), true);
  strictEqual(opens({ model: { path: "m" } }), false);
  strictEqual(opens({ model: "m" }), false);
});

Deno.test("workerBlocks() is null for a graph without a trainer", () => {
  strictEqual(workerBlocks({ seed: 3 }), null);
});

Deno.test("workerBlocks() has no samplers without a sampler block", () => {
  const blocks = workerBlocks({ trainer: TRAINER })!;
  deepStrictEqual([blocks.sampler.replicas, blocks.seed, blocks.others], [0, 0, {}]);
});

Deno.test("workerBlocks() has a value model only for an algorithm that learns one", () => {
  const of = (name: string) => workerBlocks({ trainer: TRAINER, algorithm: { name } })!;
  strictEqual(of("grpo").value_model, null);
  strictEqual(of("ppo").value_model!.path, null);
  strictEqual(workerBlocks({ trainer: TRAINER, algorithm: { mine: 1 } })!.value_model, null);
});

Deno.test("plannedBlocks() continues with the numerics of the last recorded replan", () => {
  const field = "trainer.micro_batch_tokens_max";
  const recorded = [replan(field, 512, 2), replan(field, 256, 3)].map(rowOf);
  const { blocks, requested } = plannedBlocks(
    workerBlocks({ trainer: TRAINER }),
    recorded,
    {},
  );
  strictEqual(blocks!.trainer.micro_batch_tokens_max, 256);
  deepStrictEqual(requested, []);
});

Deno.test("plannedBlocks() records a requested replan once", () => {
  const field = "trainer.micro_batch_tokens_max";
  const start = workerBlocks({ trainer: TRAINER });
  const first = plannedBlocks(start, [rowOf(replan(field, 512, 2))], { [field]: 128 });
  strictEqual(first.blocks!.trainer.micro_batch_tokens_max, 128);
  deepStrictEqual(first.requested.map(({ kind, key, value }) => [kind, key, JSON.parse(value)]), [
    ["note/replan", "resume", { round: null, cause: "asked", field, from: 512, to: 128 }],
  ]);
  const again = plannedBlocks(start, first.requested, { [field]: 128 });
  deepStrictEqual(again.requested, []);
});

Deno.test("plannedBlocks() refuses numerics that the trainer cannot have", () => {
  throws(
    () => plannedBlocks(workerBlocks({ trainer: TRAINER }), [], { "trainer.ranks": 2 }),
    InvalidInputError,
  );
});

Deno.test("replannedBlocks() changes the block that a replan names, and no other", () => {
  const blocks = { trainer: { ranks: 1 }, value_model: { ranks: 1 }, sampler: { replicas: 1 } };
  deepStrictEqual(replannedBlocks(blocks, [replan("value_model.ranks", 4)]), {
    ...blocks,
    value_model: { ranks: 4 },
  });
  deepStrictEqual(replannedBlocks({ value_model: null }, [replan("trainer.ranks", 4)]), {
    value_model: null,
  });
});
