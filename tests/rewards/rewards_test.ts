import { deepStrictEqual, rejects, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import {
  checkedScore,
  defineReward,
  exactMatch,
  gsm8k,
  length,
  parsePythonReward,
  RewardConfig,
  scoringFunctions,
} from "../../rewards/mod.ts";

const NONE = { fallback: "none" } as const;
const LAST = { fallback: "last_number" } as const;
const says = (completion: string, answer: string, config: { fallback: "none" | "last_number" } = NONE) =>
  gsm8k.score({ completion, row: { answer } }, config);

Deno.test("gsm8k.score() is 1 when the last #### number is the answer", () => {
  strictEqual(says("so #### 1,042", "1042"), 1);
  strictEqual(says("#### 3\nno, wait\n#### 4", "4"), 1);
  strictEqual(says("#### 3\nno, wait\n#### 4", "3"), 0);
  strictEqual(says("####-7.", "-7"), 1);
  strictEqual(says("#### $12.50 in all", "12.5"), 1);
  strictEqual(says("#### 10", "1"), 0);
});

Deno.test("gsm8k.score() takes an unmarked number only as a configured fall-back", () => {
  strictEqual(says("first 3, so it is 4.", "4"), 0);
  strictEqual(says("first 3, so it is 4.", "4", LAST), 1);
  strictEqual(says("#### 3, not 4", "4", LAST), 0);
  strictEqual(says("no number", "4", LAST), 0);
  strictEqual(says("it is -7", "-7", LAST), 1);
  strictEqual(says("from 5-7", "7", LAST), 1);
});

Deno.test("gsm8k.score() keeps all digits of a long integer", () => {
  strictEqual(says("#### 9007199254740993", "9007199254740992"), 0);
});

Deno.test("gsm8k.score() throws when the row's answer is not a number", () => {
  throws(() => says("#### 4", "four"), /RangeError: Cannot score with gsm8k .* it is "four"/);
  throws(() => gsm8k.score({ completion: "#### 4", row: {} }, NONE), RangeError);
});

Deno.test("exactMatch.score() compares whole texts as configured", () => {
  const score = (completion: string, options = {}) =>
    exactMatch.score({ completion, row: { answer: "Ab" } }, exactMatch.config.parse(options));
  deepStrictEqual([score(" Ab\n"), score("ab"), score("Abc")], [1, 0, 0]);
  deepStrictEqual([score(" Ab", { trim: false }), score("aB", { ignore_case: true })], [0, 1]);
  throws(
    () => exactMatch.score({ completion: "a", row: {} }, { trim: true, ignore_case: false }),
    /the row has no answer/,
  );
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
  await rejects(async () => await marked!.score({ ...sample, answer: undefined }), RangeError);
});

Deno.test("scoringFunctions() gives a reward model's settings to the reward worker", () => {
  const entry = RewardConfig.parse({ name: "reward_model", path: "/rm", weight: 2, label: "judge" });
  const [judge] = scoringFunctions([entry]);
  deepStrictEqual([judge!.name, judge!.weight, judge!.runs_on, judge!.source], ["judge", 2, "process", null]);
  const settings = { path: "/rm", dtype: "float32", device: "cpu", threads: 1, batch_tokens_max: 8192 };
  deepStrictEqual(judge!.model, settings);
  throws(() => RewardConfig.parse({ name: "reward_model" }), /path/);
});

Deno.test("checkedScore() takes a number or a score with metrics, and refuses what is not finite", () => {
  strictEqual(checkedScore(0.5, "r"), 0.5);
  strictEqual(checkedScore({ score: 2, metrics: { a: 1 } }, "r"), 2);
  throws(() => checkedScore(NaN, "r"), /Cannot use a score of 'r' .* it is NaN/);
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
