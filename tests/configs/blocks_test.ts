import { deepStrictEqual } from "node:assert/strict";
import type { z } from "zod";
import {
  CheckpointsConfig,
  EvaluationConfig,
  EvaluationData,
  ModelOrRecipe,
  RecipeConfig,
  TrainingData,
} from "../../configs/mod.ts";

const rows = [{ path: "rows.jsonl" }];
const refused = (schema: z.ZodType, value: unknown) =>
  schema.safeParse(value).error?.issues.map(({ path }) => path.join("."));

Deno.test("ModelOrRecipe fills in neither the path nor the recipe, so that rules see which", () => {
  deepStrictEqual(RecipeConfig.parse({}).recipe, "tiny_qwen");
  const { path, recipe, seed } = ModelOrRecipe.parse({});
  deepStrictEqual([path, recipe, seed], [undefined, undefined, 0]);
});

Deno.test("an evaluation needs problems, and training can do without", () => {
  deepStrictEqual(TrainingData.parse({ train: rows }).eval, []);
  deepStrictEqual(refused(TrainingData, { train: [] }), ["train"]);
  deepStrictEqual(EvaluationData.parse({}).eval, []); // A rule asks for them, or for a set.
});

Deno.test("counts are positive, and a share of failures is at most 1", () => {
  for (const field of ["every_rounds", "keep_last", "keep_every"]) {
    deepStrictEqual(refused(CheckpointsConfig, { [field]: 0 }), [field]);
  }
  deepStrictEqual(refused(CheckpointsConfig, { keep_best: { metric: "" } }), ["keep_best.metric"]);
  deepStrictEqual(refused(EvaluationConfig, { failed_fraction_max: 1.01 }), [
    "failed_fraction_max",
  ]);
  deepStrictEqual(EvaluationConfig.parse({ failed_fraction_max: 1 }).failed_fraction_max, 1);
});

Deno.test("keep_best keeps the highest one unless it is told otherwise", () => {
  deepStrictEqual(CheckpointsConfig.parse({ keep_best: { metric: "reward/mean" } }).keep_best, {
    metric: "reward/mean",
    mode: "max",
    count: 1,
  });
  deepStrictEqual(CheckpointsConfig.parse({}).keep_best, null);
});
