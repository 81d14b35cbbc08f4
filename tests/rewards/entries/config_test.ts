import { deepStrictEqual, match, strictEqual, throws } from "node:assert/strict";
import { checkedScore, RewardConfig, rowCheck, scoringFunctions } from "../../../rewards/mod.ts";
import { sample } from "../sample.ts";

Deno.test("scoringFunctions() gives a reward of the engine the answer of the row", async () => {
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
  throws(
    () => scoringFunctions(others),
    /Cannot pay 'length' .* the list has length, fn, reward_model, not 'gsm8k'/,
  );
});

Deno.test("checkedScore() refuses a number that is not finite", () => {
  for (const score of [null, 0.5, { score: 2 }, { score: 2, metrics: { a: 1 } }]) {
    strictEqual(checkedScore(score, "r"), score);
  }
  throws(() => checkedScore(NaN, "r"), /Cannot use a score of 'r' .* it is NaN/);
  throws(
    () => checkedScore({ score: Infinity, metrics: { a: 1 } }, "r"),
    /Cannot use a score of 'r' .* it is Infinity/,
  );
  throws(
    () => checkedScore({ score: 2, metrics: { a: NaN } }, "r"),
    /Cannot use 'a' of 'r' .* it is NaN/,
  );
  throws(() => checkedScore(undefined as unknown as number, "r"), RangeError);
});

Deno.test("rowCheck() lets functions have an answer that is no text, and tells graders that need one", () => {
  const list = { columns: { answer: ["a", "b"] } };
  const verl = { columns: { reward_model: { ground_truth: { target: 9 } } } };
  const python = RewardConfig.parse({ name: "python", source: "/x/my.py:fn" });
  for (const row of [list, verl]) {
    strictEqual(rowCheck(python, { needs: ["answer"] })(row), null);
    for (const name of ["gsm8k", "exact_match", "math", "characters_in_place"]) {
      match(
        rowCheck(RewardConfig.parse({ name }))(row)!,
        /its answer is (a list|an object), which only a function can grade/,
      );
    }
  }
  match(rowCheck(python, { needs: ["answer"] })({ columns: {} })!, /the row has no 'answer'$/);
});

Deno.test("rowCheck() names what a row lacks for the reward", () => {
  const row = { answer: "7", columns: { unit: "m", empty: null } };
  const marked = rowCheck(RewardConfig.parse({ name: "gsm8k" }));
  strictEqual(marked(row), null);
  match(marked({ ...row, answer: "seven" })!, /the row's answer is not a number/);
  const python = RewardConfig.parse({ name: "python", source: "/x/my.py:fn", needs: ["unit"] });
  strictEqual(rowCheck(python)(row), null);
  strictEqual(
    rowCheck(python, { needs: ["empty"] })(row),
    "Cannot score with '/x/my.py:fn' because the row has no 'empty'",
  );
  const model = RewardConfig.parse({ name: "reward_model", path: "/rm" });
  strictEqual(
    rowCheck(model, { needs: ["empty"] })({ columns: {} }),
    null,
    "a model reads text alone",
  );
});
