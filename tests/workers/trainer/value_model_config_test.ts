import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { TrainerConfig } from "../../../workers/mod.ts";
import { ValueModelConfig, valueTrainer } from "../../../workers/trainer/value_model_config.ts";
import { undescribed } from "../environments/undescribed.ts";

const trainer = TrainerConfig.parse({
  engine: "deepspeed",
  ranks: 2,
  devices: [0, 1],
  threads: 4,
});

Deno.test("ValueModelConfig describes every field", () => {
  deepStrictEqual(undescribed(ValueModelConfig), []);
});

Deno.test("valueTrainer() is the trainer's block where value_model sets nothing", () => {
  const { devices, ...rest } = valueTrainer(trainer, ValueModelConfig.parse({}));
  const { devices: _, ...wanted } = trainer;
  deepStrictEqual(rest, wanted);
  strictEqual(devices, null); // Never the trainer's: its GPUs are chosen for it.
});

Deno.test("valueTrainer() takes each setting of value_model, false and 0 included", () => {
  const settings = { ranks: 1, zero: 0, gradient_checkpointing: false, devices: [3] };
  const block = valueTrainer(
    { ...trainer, zero: 2, gradient_checkpointing: true },
    ValueModelConfig.parse(settings),
  );
  const { ranks, zero, gradient_checkpointing, devices, engine } = block;
  deepStrictEqual({ ranks, zero, gradient_checkpointing, devices }, settings);
  strictEqual(engine, "deepspeed");
});

Deno.test("ValueModelConfig refuses what the trainer's setting refuses", () => {
  for (const block of [{ ranks: 0 }, { zero: 4 }, { threads: 1.5 }]) {
    strictEqual(ValueModelConfig.safeParse(block).success, false);
  }
  strictEqual(ValueModelConfig.parse({}).optimizer.lr, 1e-5);
});
