import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { RewardConfig, scoringFunctions } from "../../rewards/mod.ts";
import { sample } from "./sample.ts";

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
