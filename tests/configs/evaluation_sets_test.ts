import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import {
  byEvaluationName,
  evaluationName,
  evaluationSets,
  metricsPrefix,
  setsHaveNames,
} from "../../configs/evaluation_sets.ts";
import { SourceConfig } from "../../data/mod.ts";

const source = (path: string, name?: string) => SourceConfig.parse({ path, name });
const [hard, easy] = [source("/data/hard.jsonl"), source("/data/easy.jsonl", "simple")];
const blocks = (sources: SourceConfig[], files: "apart" | "together" = "apart") => ({
  data: { eval: sources },
  evaluate: { files },
});

Deno.test("evaluationSets() has one set unless several files are kept apart", () => {
  const path = ["data", "eval"];
  const one = (sources: SourceConfig[]) => [{ name: null, split: "eval", sources, path }];
  deepStrictEqual(evaluationSets({}), one([]));
  deepStrictEqual(evaluationSets(blocks([hard], "apart")), one([hard]));
  deepStrictEqual(evaluationSets(blocks([hard, easy], "together")), one([hard, easy]));
  const data = { eval: [hard, easy] };
  deepStrictEqual(evaluationSets({ data, evaluate: null }), one([hard, easy]));
});

Deno.test("evaluationSets() names a set after its source, else after its file", () => {
  deepStrictEqual(evaluationSets(blocks([hard, easy], "apart")), [
    { name: "hard", split: "eval/hard", sources: [hard], path: ["data", "eval", 0] },
    { name: "simple", split: "eval/simple", sources: [easy], path: ["data", "eval", 1] },
  ]);
});

Deno.test("evaluationSets() has the sets of evaluate beside those of data.eval, or alone", () => {
  const settings = { name: "math", data: [hard, easy] };
  const set = {
    name: "math",
    split: "eval/math",
    sources: [hard, easy],
    path: ["evaluate", "sets", 0],
    settings,
  };
  deepStrictEqual(evaluationSets({ evaluate: { files: "apart", sets: [settings] } }), [set]);
  const both = { data: { eval: [easy] }, evaluate: { files: "apart" as const, sets: [settings] } };
  deepStrictEqual(evaluationSets(both).map(({ name }) => name), [null, "math"]);
  const clash = { evaluate: { files: "apart" as const, sets: [settings, settings] } };
  deepStrictEqual(setsHaveNames(clash).map(({ path }) => path), [["evaluate", "sets", 1, "name"]]);
});

Deno.test("metricsPrefix() has the name of a set, or of an only file that is named", () => {
  const prefixes = [blocks([hard]), blocks([easy]), blocks([hard, easy], "apart")].map((one) =>
    evaluationSets(one).map(metricsPrefix)
  );
  deepStrictEqual(prefixes, [["eval"], ["eval/simple"], ["eval/hard", "eval/simple"]]);
});

Deno.test("evaluationName() keeps the name of an only set", () => {
  deepStrictEqual([evaluationName(null, "before"), evaluationName("hard", "before")], [
    "before",
    "hard/before",
  ]);
});

Deno.test("setsHaveNames() refuses names that collide or are no part of a metric's name", () => {
  deepStrictEqual(setsHaveNames(blocks([hard, easy], "apart")), []);
  const twice = [hard, source("/other/hard.jsonl")];
  const [issue] = setsHaveNames(blocks(twice, "apart"));
  deepStrictEqual(issue!.path, ["data", "eval", 1]);
  match(issue!.message, /"hard", as those of \/data\/hard\.jsonl are; give it another `name`/);
  deepStrictEqual(setsHaveNames(blocks(twice, "together")), []);
  const [slash, ...others] = setsHaveNames(blocks([hard, source("/a.jsonl", "a/b")], "apart"));
  deepStrictEqual([slash!.path, others], [["data", "eval", 1, "name"], []]);
  strictEqual(/printable characters without '\/'/.test(slash!.message), true);
});

Deno.test("byEvaluationName() sorts by phase, round and set, whatever the order of arrival", () => {
  const sorted = [
    "math/before_greedy",
    "math/before_sampled",
    "sums/before_greedy",
    "math/round_2_greedy",
    "sums/round_2_greedy",
    "math/round_10_greedy",
    "a/b/after_greedy",
    "math/after_greedy",
  ];
  deepStrictEqual(sorted.toReversed().sort(byEvaluationName), sorted);
  deepStrictEqual(["after", "eval", "before"].sort(byEvaluationName), ["before", "eval", "after"]);
});
