import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { FLOWS, StopConfig } from "../../configs/mod.ts";
import { EvaluationSetConfig, PairSetConfig } from "../../configs/evaluation_set_config.ts";
import { writeOut } from "../../configs/short_forms.ts";

Deno.test("a set inherits what it does not say", () => {
  const { name, data, sampling, ...rest } = EvaluationSetConfig.parse({
    name: "math",
    data: [{ path: "m" }],
    sampling: { temperature: 0.6 },
  });
  deepStrictEqual([name, data.length], ["math", 1]);
  deepStrictEqual(sampling, { temperature: 0.6, top_p: null, top_k: null, tokens_max: null });
  deepStrictEqual([...new Set(Object.values(rest))], [null]);
  strictEqual(PairSetConfig.safeParse({ name: "a" }).success, false);
});

Deno.test("a set has the short forms of data and reward", () => {
  const set = { name: "math", data: "m.jsonl", reward: "gsm8k" };
  const { value } = writeOut({ evaluate: { sets: [set] } });
  deepStrictEqual(value, {
    evaluate: {
      sets: [{ name: "math", data: [{ path: "m.jsonl" }], reward: [{ name: "gsm8k" }] }],
    },
  });
  deepStrictEqual(writeOut(value).value, value);
});

Deno.test("only flows that train evaluate between rounds and stop", () => {
  const has = (flow: keyof typeof FLOWS) => "stop" in FLOWS[flow].shape;
  deepStrictEqual(
    Object.keys(FLOWS).filter((flow) => has(flow as keyof typeof FLOWS)),
    ["online", "supervised", "preference"],
  );
  strictEqual(StopConfig.parse({ metric: "eval/a", patience_rounds: 1 }).mode, "max");
});
