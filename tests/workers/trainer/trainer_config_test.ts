import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { declaredFacts } from "../../../data/mod.ts";
import { TrainerConfig } from "../../../workers/mod.ts";
import { Lora, TrainerProcess } from "../../../workers/trainer/trainer_config.ts";
import { undescribed } from "../environments/undescribed.ts";

Deno.test("TrainerConfig describes every field", () => {
  deepStrictEqual(undescribed(TrainerConfig), []);
});

Deno.test("TrainerConfig has every setting of a rank, and those of the group besides", () => {
  const [all, ranks] = [TrainerConfig, TrainerProcess].map(({ shape }) => Object.keys(shape));
  deepStrictEqual(ranks!.filter((name) => !all!.includes(name)), []);
  deepStrictEqual(all!.filter((name) => !ranks!.includes(name)), [
    "ranks",
    "micro_batch_tokens_max",
    "non_finite_max",
    "updates_per_batch",
    "epochs_per_batch",
    "optimizer",
    "devices",
    "python",
  ]);
});

Deno.test("TrainerConfig: all weights are trained unless an adapter is configured", () => {
  strictEqual(TrainerConfig.parse({}).lora, null);
  deepStrictEqual(Lora.parse({}), {
    rank: 16,
    alpha: 32,
    dropout: 0,
    targets: "all_linear",
    quantize: null,
    publish: "merged",
  });
});

Deno.test("TrainerConfig: a resume may replan what changes memory alone", () => {
  const replanned = Object.entries(TrainerConfig.shape).flatMap(([name, field]) =>
    declaredFacts(field).resume === "replan" ? [name] : []
  );
  deepStrictEqual(replanned, ["ranks", "micro_batch_tokens_max", "devices"]);
});

Deno.test("TrainerConfig refuses a fourth ZeRO stage, no ranks and a dropout of 1", () => {
  for (const block of [{ zero: 4 }, { ranks: 0 }, { dropout: 1 }, { lora: { targets: [] } }]) {
    strictEqual(TrainerConfig.safeParse(block).success, false);
  }
});
