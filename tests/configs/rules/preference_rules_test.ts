import { deepStrictEqual } from "node:assert/strict";
import { AlgorithmChoice } from "../../../algs/mod.ts";
import { PreferenceConfig } from "../../../configs/mod.ts";
import { PREFERENCE_RULES } from "../../../configs/rules/preference_rules.ts";
import type { Blocks } from "../../../configs/rules/rule_blocks.ts";

const MODEL = { path: "model" };
const TASK = { digits: 3 };
const issues = (blocks: Record<string, unknown>) =>
  PREFERENCE_RULES.flatMap((rule) => rule({ flow: "preference", ...blocks } as Blocks));

Deno.test("a preference run starts from a path or a recipe, exactly one", () => {
  const task = TASK;
  deepStrictEqual(issues({ task, model: MODEL }), []);
  deepStrictEqual(issues({ task, model: { recipe: "tiny_qwen", seed: 3 } }), []);
  deepStrictEqual(issues({ task, model: { seed: 3 } }), [{
    path: ["model", "path"],
    message: "missing; give the path of a model, or a recipe",
  }]);
  deepStrictEqual(issues({ task, model: { ...MODEL, recipe: "tiny_qwen" } }), [{
    path: ["model", "path"],
    message: "is given together with a recipe; leave one of them out",
  }]);
});

Deno.test("a supervised run starts from a path or a recipe, exactly one", () => {
  const of = (model: Record<string, unknown>) => issues({ flow: "supervised", model });
  deepStrictEqual([of(MODEL), of({ recipe: "tiny_qwen", seed: 3 })], [[], []]);
  deepStrictEqual(of({ seed: 3 }).map(({ path }) => path), [["model", "path"]]);
  deepStrictEqual(of({ ...MODEL, recipe: "tiny_qwen" }).length, 1);
});

Deno.test("pairs come from data or from a task, exactly one", () => {
  const data = { eval: [] };
  deepStrictEqual(issues({ model: MODEL, data }), []);
  deepStrictEqual(issues({ model: MODEL }), [{
    path: ["data"],
    message: "missing; give rows with data.train, or a task",
  }]);
  deepStrictEqual(issues({ model: MODEL, data, task: TASK }), [{
    path: ["task"],
    message: "is given together with data; leave one of them out",
  }]);
});

Deno.test("a warm-up needs a model with a vocabulary", () => {
  const warmup = PreferenceConfig.shape.warmup.parse({ rounds: 1, rows_per_round: 4 });
  const of = (name: string) => ({
    model: MODEL,
    task: TASK,
    algorithm: AlgorithmChoice.parse({ name }),
  });
  deepStrictEqual(issues({ ...of("dpo"), warmup }), []);
  deepStrictEqual(issues({ ...of("reward_model"), warmup: null }), []);
  deepStrictEqual(issues({ ...of("reward_model"), warmup }), [{
    path: ["warmup"],
    message: "reward_model trains a model without a vocabulary, which cannot learn completions: " +
      "use null, and start from a model that was",
  }]);
});

Deno.test("a warm-up on rows with labels would teach bad ones, on a task's pairs it does not", () => {
  const warmup = PreferenceConfig.shape.warmup.parse({ rounds: 1, rows_per_round: 4 });
  const of = (name: string) => ({ model: MODEL, algorithm: AlgorithmChoice.parse({ name }) });
  const data = { eval: [] };
  deepStrictEqual(issues({ ...of("kto"), task: TASK, warmup }), []);
  deepStrictEqual(issues({ ...of("kto"), data, warmup: null }), []);
  deepStrictEqual(issues({ ...of("dpo"), data, warmup }), []);
  deepStrictEqual(issues({ ...of("kto"), data, warmup }), [{
    path: ["warmup"],
    message: "would also teach completions that are labelled undesirable: use null, and start " +
      "from a model that was fine-tuned on good ones",
  }]);
});

Deno.test("completions of different prompts need two rows", () => {
  const of = (algorithm: Record<string, unknown>) => ({
    model: MODEL,
    task: TASK,
    algorithm: AlgorithmChoice.parse(algorithm),
  });
  const one = { pairs_per_round: 1, evaluate: { pairs: 1 } };
  const message = "is 1; kto estimates the KL with completions of different prompts: at least 2";
  deepStrictEqual(issues({ ...of({ name: "kto" }), ...one }), [
    { path: ["pairs_per_round"], message },
    { path: ["evaluate", "pairs"], message },
  ]);
  const two = { pairs_per_round: 2, evaluate: { pairs: null } };
  deepStrictEqual(issues({ ...of({ name: "kto" }), ...two }), []);
  deepStrictEqual(issues({ ...of({ name: "kto", loss: "apo_zero_unpaired" }), ...one }), []);
  deepStrictEqual(issues({ ...of({ name: "dpo" }), ...one }), []);
});

Deno.test("other flows have none of these rules", () => {
  deepStrictEqual(issues({ flow: "online", model: {} }), []);
});
