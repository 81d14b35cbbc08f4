import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { TrainerConfig } from "../../../workers/mod.ts";
import {
  microBatchTokensMax,
  type Replan,
  REPLAN_FIELDS,
  replanned,
  requestedReplans,
  roundOf,
} from "../../../workers/trainer/replan.ts";

const trainer = TrainerConfig.parse({ engine: "deepspeed", ranks: 2 });
const halved = (to: number, block: "trainer" | "value_model" = "trainer"): Replan => ({
  round: 1,
  cause: "out_of_memory",
  from: 2 * to,
  to,
  field: `${block}.micro_batch_tokens_max`,
});

Deno.test("REPLAN_FIELDS are what the settings of both trainers allow", () => {
  deepStrictEqual(REPLAN_FIELDS.toSorted(), [
    "trainer.devices",
    "trainer.micro_batch_tokens_max",
    "trainer.ranks",
    "value_model.devices",
    "value_model.micro_batch_tokens_max",
    "value_model.ranks",
  ]);
});

Deno.test("replanned() applies its block's replans, the last one of each field", () => {
  const replans = [halved(2048), halved(64, "value_model"), halved(1024)];
  deepStrictEqual(replanned(trainer, replans), { ...trainer, micro_batch_tokens_max: 1024 });
  deepStrictEqual(replanned(trainer, replans, "value_model").micro_batch_tokens_max, 64);
  deepStrictEqual(replanned(trainer, []), trainer);
});

Deno.test("microBatchTokensMax() is the last replan's, or the configured one", () => {
  const replans = [halved(32), halved(16), halved(8, "value_model")];
  strictEqual(microBatchTokensMax(64, [], "trainer"), 64);
  strictEqual(microBatchTokensMax(64, replans, "trainer"), 16);
  strictEqual(microBatchTokensMax(64, replans, "value_model"), 8);
});

Deno.test("requestedReplans() gives a row for what changes, and none for what is so already", () => {
  const requested = { "trainer.ranks": 4, "trainer.micro_batch_tokens_max": 4096 };
  deepStrictEqual(requestedReplans(trainer, [], requested), [
    { round: null, cause: "asked", field: "trainer.ranks", from: 2, to: 4 },
  ]);
  deepStrictEqual(requestedReplans(trainer, [], { "value_model.ranks": 4 }), []);
});

Deno.test("requestedReplans() counts from the replans so far", () => {
  const requested = { "trainer.micro_batch_tokens_max": 4096 };
  const [row] = requestedReplans(trainer, [halved(1024)], requested);
  deepStrictEqual([row!.from, row!.to], [1024, 4096]);
});

Deno.test("requestedReplans() refuses a value that the setting refuses, by name", () => {
  throws(() => requestedReplans(trainer, [], { "trainer.ranks": 0 }), {
    code: "invalid_input",
    message: /^Cannot resume with trainer\.ranks=0: /,
  });
});

Deno.test("requestedReplans() refuses several ranks for the engine of one process", () => {
  const one = { ...trainer, engine: "torch" as const, ranks: 1 };
  throws(() => requestedReplans(one, [], { "trainer.ranks": 2 }), {
    message:
      "Cannot resume with trainer.ranks=2 because trainer.engine is torch, which is one process",
  });
});

Deno.test("roundOf() is the innermost number of a key", () => {
  strictEqual(roundOf("round/3/train_policy"), 3);
  strictEqual(roundOf("round/3/slab/12/generate"), 12);
  strictEqual(roundOf("create_model"), null);
});
