import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import {
  charactersInPlace,
  checkedScore,
  defineReward,
  exactMatch,
  length,
  parsePythonReward,
  RewardConfig,
  rightness,
  rightOfAll,
  scoringFunctions,
} from "../../rewards/mod.ts";

Deno.test("exactMatch.score() compares whole texts as configured", () => {
  const score = (completion: string, options = {}) =>
    exactMatch.score({ completion, row: { answer: "Ab" } }, exactMatch.config.parse(options));
  deepStrictEqual([score(" Ab\n"), score("ab"), score("Abc")], [1, 0, 0]);
  deepStrictEqual([score(" Ab", { trim: false }), score("aB", { ignore_case: true })], [0, 1]);
  strictEqual(exactMatch.score({ completion: "x", row: {} }, { trim: true, ignore_case: false }), null);
});

Deno.test("charactersInPlace.score() is the share in place, and 0 for what has none, however short", () => {
  const score = (completion: string, answer = "12345") => charactersInPlace.score({ completion, row: { answer } }, {});
  deepStrictEqual([score("12345"), score(" 12354\n"), score("123"), score("12345x")], [1, 0.6, 0.6, 5 / 6]);
  deepStrictEqual([score(""), score("x"), score("no idea at all"), score("512345")], [0, 0, 0, 0]);
  deepStrictEqual([score("é👍", "é👍"), score("👍é", "👎é"), score("", "")], [1, 0.5, 0]);
  throws(() => charactersInPlace.score({ completion: "a", row: {} }, {}), /the row has no answer/);
});

Deno.test("length.score() is a share of max in code points or tokens", () => {
  const score = (options: object) => length.score({ completion: "é👍abc", tokens: 2 }, length.config.parse(options));
  strictEqual(score({ max: 20 }), 0.75);
  strictEqual(score({ max: 20, prefer: "long" }), 0.25);
  strictEqual(score({ max: 4, unit: "tokens" }), 0.5);
  strictEqual(score({ max: 3 }), 0);
});

Deno.test("parsePythonReward() splits path.py:function and refuses the rest", () => {
  deepStrictEqual(parsePythonReward("a/b.py:f"), { path: "a/b.py", function: "f" });
  for (const text of ["gsm8k", "a.py", "a.py:", "a.txt:f", "a.py:f g"]) strictEqual(parsePythonReward(text), null);
});

const sample = {
  prompt: "p",
  completion: "#### 4",
  row: { answer: "2+2=4 #### 4", level: 1 },
  answer: "4",
  tokens: 5,
  signal: new AbortController().signal,
};

Deno.test("scoringFunctions() gives engine rewards the reference answer, and Python ones only a description", async () => {
  const [marked, short, python] = scoringFunctions([
    RewardConfig.parse({ name: "gsm8k" }),
    RewardConfig.parse({ name: "length", unit: "tokens", max: 10, weight: 0.1, label: "brevity" }),
    RewardConfig.parse({ name: "python", source: "/x/my.py:Fn", timeout_ms: 5 }),
  ]);
  strictEqual(await marked!.score(sample), 1);
  strictEqual(await short!.score(sample), 0.5);
  deepStrictEqual([short!.name, short!.weight, short!.runs_on], ["brevity", 0.1, "engine"]);
  deepStrictEqual(
    [python!.name, python!.runs_on, python!.source, python!.timeout_ms],
    ["fn", "process", "/x/my.py:Fn", 5],
  );
  throws(() => python!.score(sample), /Cannot score with 'fn' in the engine/);
  strictEqual(await marked!.score({ ...sample, answer: undefined }), null);
});

Deno.test("scoringFunctions() hands a condition on, and refuses one that names no reward", () => {
  const right = RewardConfig.parse({ name: "gsm8k" });
  const others = [
    { name: "length", when: "gsm8k" },
    { name: "python", source: "/x/my.py:fn", when: "gsm8k" },
    { name: "reward_model", path: "/rm", when: "gsm8k" },
  ].map((entry) => RewardConfig.parse(entry));
  const functions = scoringFunctions([right, ...others]);
  deepStrictEqual(functions.map(({ when }) => when), [undefined, "gsm8k", "gsm8k", "gsm8k"]);
  strictEqual("when" in functions[3]!.model!, false);
  throws(() => scoringFunctions(others), /Cannot pay 'length' .* there are length, fn, reward_model, not 'gsm8k'/);
});

Deno.test("scoringFunctions() gives a reward model's settings to the reward worker", () => {
  const entry = RewardConfig.parse({ name: "reward_model", path: "/rm", weight: 2, label: "judge" });
  const [judge] = scoringFunctions([entry]);
  deepStrictEqual([judge!.name, judge!.weight, judge!.runs_on, judge!.source], ["judge", 2, "process", null]);
  const settings = { path: "/rm", dtype: "float32", device: "cpu", threads: 1, batch_tokens_max: 8192 };
  deepStrictEqual(judge!.model, { ...settings, template_arguments: {}, turn_end: "template" });
  throws(() => RewardConfig.parse({ name: "reward_model" }), /path/);
});

Deno.test("checkedScore() takes nothing, a number or a score with metrics, and refuses what is not finite", () => {
  for (const score of [null, 0.5, { score: 2 }, { score: 2, metrics: { a: 1 } }]) {
    strictEqual(checkedScore(score, "r"), score);
  }
  throws(() => checkedScore(NaN, "r"), /Cannot use a score of 'r' .* it is NaN/);
  throws(
    () => checkedScore({ score: Infinity, metrics: { a: 1 } }, "r"),
    /Cannot use a score of 'r' .* it is Infinity/,
  );
  throws(() => checkedScore({ score: 2, metrics: { a: NaN } }, "r"), /Cannot use 'a' of 'r' .* it is NaN/);
  throws(() => checkedScore(undefined as unknown as number, "r"), RangeError);
});

Deno.test("defineReward() types the configuration and what the reward reads", () => {
  const mine = defineReward({
    name: "mine",
    runs_on: "engine",
    config: z.strictObject({ scale: z.number().default(2) }),
    score: ({ completion, tokens, signal }, { scale }) => signal.aborted ? 0 : (completion.length + tokens) * scale,
  });
  strictEqual(mine.score({ ...sample, completion: "ab" }, { scale: 2 }), 14);
  // @ts-expect-error: a configuration that the schema does not have
  mine.score(sample, { size: 2 });
});

Deno.test("rightness(): the first reward that says what is right decides, and a setting decides before it", () => {
  const list = (...names: string[]) =>
    names.map((name) => RewardConfig.parse(name.includes(":") ? { name: "python", source: name } : { name }));
  deepStrictEqual(rightness(list("length", "gsm8k", "my.py:f"), null), { by: "gsm8k", at: 1, says: false });
  deepStrictEqual(rightness(list("length", "my.py:f", "gsm8k"), null), { by: "f", at: 0.5, says: true });
  deepStrictEqual(rightness(list("length"), null), { by: null, at: 1, says: false });
  deepStrictEqual(rightness(list("length", "gsm8k"), 0.9), { by: "length", at: 0.9, says: false });
});

Deno.test("rightOfAll() fills what some samples do not say of `right` from their scores, and makes up nothing else", () => {
  const parts: Record<string, number>[] = [{ f: 0.9, "f/right": 0, "f/steps": 3, g: 1 }, { f: 0.5, g: 0 }, {
    f: 0.4,
    g: 1,
  }];
  deepStrictEqual(rightOfAll(parts), [
    { f: 0.9, "f/right": 0, "f/steps": 3, g: 1 },
    { f: 0.5, g: 0, "f/right": 1 },
    { f: 0.4, g: 1, "f/right": 0 },
  ]);
  deepStrictEqual(rightOfAll([{ f: 1 }, { f: 0 }]), [{ f: 1 }, { f: 0 }]);
});
