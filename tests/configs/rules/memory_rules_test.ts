import { deepStrictEqual } from "node:assert/strict";
import { AlgorithmChoice } from "../../../algs/mod.ts";
import { MEMORY_RULES } from "../../../configs/rules/memory_rules.ts";
import type { Blocks } from "../../../configs/rules/rule_blocks.ts";
import { TrainerConfig } from "../../../workers/mod.ts";

const issues = (
  trainer: Record<string, unknown>,
  { flow = "online", algorithm }: { flow?: Blocks["flow"]; algorithm?: string } = {},
) =>
  MEMORY_RULES.flatMap((rule) =>
    rule({
      flow,
      trainer: TrainerConfig.parse(trainer),
      ...(algorithm !== undefined && { algorithm: AlgorithmChoice.parse({ name: algorithm }) }),
    })
  );
const paths = (...args: Parameters<typeof issues>) =>
  issues(...args).map(({ path }) => path.join("."));

Deno.test("offloading is refused where ZeRO does not cut what it offloads", () => {
  const offload = { optimizer: true, parameters: true };
  const both = ["trainer.offload.optimizer", "trainer.offload.parameters"];
  const found = [0, 1, 2, 3].map((zero) => paths({ engine: "deepspeed", zero, offload }));
  deepStrictEqual(found, [both, both.slice(1), both.slice(1), []]);
  const off = { optimizer: false, parameters: false };
  deepStrictEqual(issues({ engine: "deepspeed", zero: 0, offload: off }), []);
});

Deno.test("the torch engine offloads nothing, and the message says what does", () => {
  deepStrictEqual(issues({ engine: "torch", offload: { optimizer: true } }), [{
    path: ["trainer", "offload", "optimizer"],
    message: "is true, and the torch engine has nothing to offload: set trainer.engine: " +
      "deepspeed and trainer.zero: 1, 2 or 3",
  }]);
});

Deno.test("a model with a separate head is neither packed nor adapted", () => {
  const trainer = { packing: true, lora: {} };
  const flow = "preference";
  deepStrictEqual(issues(trainer, { flow, algorithm: "reward_model" }), [
    {
      path: ["trainer", "packing"],
      message: "is true; the rows of reward_model, whose model has a separate head, are padded: " +
        "leave it out",
    },
    {
      path: ["trainer", "lora"],
      message: "reward_model trains a separate head, which no adapter saves: leave it out",
    },
  ]);
  deepStrictEqual(issues(trainer, { flow, algorithm: "dpo" }), []);
});

Deno.test("dropout is for supervised training alone, of weights and of adapters", () => {
  const trainer = { dropout: 0.1, lora: { dropout: 0.2 } };
  const both = ["trainer.dropout", "trainer.lora.dropout"];
  deepStrictEqual(paths(trainer, { flow: "supervised", algorithm: "sft" }), []);
  deepStrictEqual(paths(trainer, { flow: "supervised" }), []);
  deepStrictEqual(paths(trainer, { flow: "online", algorithm: "sft" }), both);
  deepStrictEqual(paths(trainer, { flow: "preference", algorithm: "dpo" }), both);
  deepStrictEqual(paths({ dropout: 0, lora: { dropout: 0 } }), []);
});

Deno.test("ZeRO 3 cannot cut quantized weights; lower stages take them", () => {
  const quantized = (zero: number) => ({ engine: "deepspeed", zero, lora: { quantize: "nf4" } });
  deepStrictEqual(issues(quantized(2)), []);
  deepStrictEqual(issues(quantized(3)), [{
    path: ["trainer", "lora", "quantize"],
    message: "is nf4; ZeRO 3 cannot shard weights of 4 bits: use trainer.zero 0, 1 or 2",
  }]);
});
