import { deepStrictEqual } from "node:assert/strict";
import { sourcesHaveRewards } from "../../../configs/rules/reward_source_rules.ts";
import type { Blocks } from "../../../configs/rules/rule_blocks.ts";
import { RewardConfig } from "../../../rewards/mod.ts";

type Entry = { label: string; on?: { source: string | string[] } };
const list = (entries: Entry[]) =>
  entries.map((entry) => RewardConfig.parse({ name: "exact_match", ...entry }));
const files = (...names: (string | undefined)[]) =>
  names.map((name, i) => ({ path: `${i}.jsonl`, ...(name && { name }) }));
const issues = (entries: Entry[], blocks: object) =>
  sourcesHaveRewards({ flow: "online", reward: list(entries), ...blocks } as unknown as Blocks)
    .map(({ path, message }) => `${path.join(".")}: ${message}`);
const MATH: Entry = { label: "m", on: { source: "math" } };
const BOTH: Entry = { label: "b" };

Deno.test("rewards for all rows ask nothing of sources", () => {
  deepStrictEqual(issues([BOTH], { data: { train: files(undefined), eval: [] } }), []);
});

Deno.test("a reward for some sources needs names without a slash, wherever rows are scored", () => {
  const data = { train: files("math", undefined), eval: files("a/b", undefined) };
  deepStrictEqual(issues([MATH, BOTH], { data, evaluate: { files: "apart" } }), [
    "data.train.1.name: missing, but a reward is for some sources only: give every source a name",
    "data.eval.0.name: must have no '/': a reward knows rows by what is before it",
    "data.eval.1.name: missing, but a reward is for some sources only: give every source a name",
  ]);
  deepStrictEqual(issues([MATH, BOTH], { data: { ...data, train: files("math") } }), []);
});

Deno.test("a name that no source has is said, with the names there are", () => {
  const data = { train: files("math", "code"), eval: [] };
  deepStrictEqual(issues([{ ...MATH, on: { source: ["mth", "code"] } }, BOTH], { data }), [
    "reward.0.on.source: no source is called 'mth': there are math, code (did you mean math?)",
  ]);
  deepStrictEqual(issues([MATH, BOTH], { flow: "quickstart", task: {} }), [
    "reward.0.on.source: no source is called 'math': no source has a name",
  ]);
});

Deno.test("a source whose rows nothing scores is said", () => {
  const data = { train: files("math", "code"), eval: files("held") };
  const evaluate = { files: "together" };
  deepStrictEqual(issues([MATH], { data, evaluate }), [
    "reward: no reward applies to rows of code, held: give them one, or let one of m apply to them",
  ]);
  deepStrictEqual(issues([MATH, BOTH], { data, evaluate }), []);
});

Deno.test("a set with its own rewards is judged by its own sources", () => {
  const set = { name: "s", data: files("code"), reward: list([MATH]) };
  deepStrictEqual(
    issues([BOTH], { data: { train: files("x"), eval: [] }, evaluate: { sets: [set] } }),
    [
      "evaluate.sets.0.reward.0.on.source: no source is called 'math': there are code",
      "evaluate.sets.0.reward: no reward applies to rows of code: give them one, or let one of m " +
      "apply to them",
    ],
  );
});
