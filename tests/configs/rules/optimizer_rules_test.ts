import { deepStrictEqual } from "node:assert/strict";
import { OPTIMIZER_RULES, optimizersOf } from "../../../configs/rules/optimizer_rules.ts";
import { Optimizer } from "../../../data/mod.ts";
import { TrainerConfig, ValueModelConfig } from "../../../workers/mod.ts";
import { lines } from "../parsed.ts";

const issues = (trainer: Record<string, unknown>, value_model: Record<string, unknown> = {}) =>
  OPTIMIZER_RULES.flatMap((rule) =>
    rule({
      flow: "online",
      trainer: TrainerConfig.parse(trainer),
      value_model: ValueModelConfig.parse(value_model),
    })
  ).map(({ path, message }) => `${path.join(".")} ${message}`);
const optimizer = (name: string) => ({ optimizer: { name } });

Deno.test("Muon, Adafactor and 8-bit AdamW need whole matrices: ZeRO 1 to 3 are refused, 0 is not", () => {
  for (const name of ["muon", "adafactor", "adamw_8bit"]) {
    const found = [0, 1, 2, 3].map((zero) =>
      issues({ engine: "deepspeed", zero, ...optimizer(name) }).length
    );
    deepStrictEqual([name, found, issues(optimizer(name))], [name, [0, 1, 1, 1], []]);
  }
  deepStrictEqual(issues({ engine: "deepspeed", zero: 2, ...optimizer("muon") }), [
    "trainer.optimizer.name is muon, which steps whole matrices, and ZeRO 2 shards them: use " +
    "trainer.zero: 0, or adamw",
  ]);
  deepStrictEqual(issues({ engine: "deepspeed", zero: 1, ...optimizer("adamw_8bit") }), [
    "trainer.optimizer.name is adamw_8bit, which has a scale for each block of a tensor, and " +
    "ZeRO 1 shards them: use trainer.zero: 0, or adamw",
  ]);
  deepStrictEqual(issues({ engine: "deepspeed", zero: 3, ...optimizer("adamw") }), []);
});

Deno.test("a value model's optimizer is held against its own ZeRO stage, or the trainer's", () => {
  const trainer = { engine: "deepspeed", zero: 1 };
  const refused =
    "value_model.optimizer.name is muon, which steps whole matrices, and ZeRO 1 shards them: " +
    "use value_model.zero: 0, or adamw";
  deepStrictEqual(issues(trainer, optimizer("muon")), [refused]);
  deepStrictEqual(issues(trainer, { zero: 0, ...optimizer("muon") }), []);
  deepStrictEqual(issues({}, { engine: "deepspeed", zero: 1, ...optimizer("muon") }), [refused]);
});

Deno.test("Adafactor refuses the settings of AdamW's moments, which it does not read", () => {
  const optimizer = { name: "adafactor", betas: [0.9, 0.95], eps: 1e-6 };
  deepStrictEqual(issues({ optimizer: optimizer }), [
    "trainer.optimizer.betas is [0.9,0.95], which adafactor does not read: leave it out",
    "trainer.optimizer.eps is 0.000001, which adafactor does not read: leave it out",
  ]);
  deepStrictEqual(issues({ optimizer: { ...optimizer, name: "muon" } }), []);
});

Deno.test("optimizersOf() has every block with an optimizer", () => {
  const one = Optimizer.parse({});
  const blocks = optimizersOf({
    flow: "quickstart",
    trainer: TrainerConfig.parse({}),
    warmup: { rounds: 1, rows_per_round: 1, optimizer: one },
  });
  deepStrictEqual(blocks, [["trainer", one], ["warmup", one]]);
});

Deno.test("an optimizer that does not exist is refused with those that do", async () => {
  deepStrictEqual(await lines(["trainer.optimizer.name=sgd"]), [
    'override trainer.optimizer.name: expected one of adamw, adamw_8bit, muon, adafactor, got "sgd"',
  ]);
});
