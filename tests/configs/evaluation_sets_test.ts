import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { evaluationName, evaluationSets, setsHaveNames } from "../../configs/evaluation_sets.ts";
import { SourceConfig } from "../../data/mod.ts";

const source = (path: string, name?: string) => SourceConfig.parse({ path, name });
const [hard, easy] = [source("/data/hard.jsonl"), source("/data/easy.jsonl", "simple")];
const blocks = (sources: SourceConfig[], files?: "apart" | "together") => ({
  data: { eval: sources },
  evaluate: { files },
});

Deno.test("evaluationSets() has one set unless several files are kept apart", () => {
  const one = (sources: SourceConfig[]) => [{ name: null, split: "eval", sources }];
  deepStrictEqual(evaluationSets({}), one([]));
  deepStrictEqual(evaluationSets(blocks([hard], "apart")), one([hard]));
  deepStrictEqual(evaluationSets(blocks([hard, easy], "together")), one([hard, easy]));
  deepStrictEqual(evaluationSets(blocks([hard, easy])), one([hard, easy]), "as recorded before");
});

Deno.test("evaluationSets() names a set after its source, else after its file", () => {
  deepStrictEqual(evaluationSets(blocks([hard, easy], "apart")), [
    { name: "hard", split: "eval/hard", sources: [hard] },
    { name: "simple", split: "eval/simple", sources: [easy] },
  ]);
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
