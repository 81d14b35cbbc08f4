import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { Config, type Flow, FLOWS } from "../../configs/mod.ts";

const model = { path: "model" };
const data = { train: [{ path: "rows.jsonl" }] };
const reward = [{ name: "exact_match" }];
const MINIMAL: Record<Flow, Record<string, unknown>> = {
  online: {
    rounds: 1,
    prompts_per_round: 1,
    samples_per_prompt: 2,
    model,
    data,
    reward,
    algorithm: { name: "grpo" },
  },
  supervised: { rounds: 1, rows_per_round: 1, model, data },
  evaluate: { model, reward },
  quickstart: {
    warmup: { rounds: 1, rows_per_round: 1 },
    online: { rounds: 1, prompts_per_round: 1, samples_per_prompt: 2 },
  },
  preference: { rounds: 1, pairs_per_round: 1, model },
  prepare: { output: "out", inputs: [{ path: "rows.jsonl" }] },
};
const parse = (flow: Flow, changes: Record<string, unknown> = {}) =>
  Config.safeParse({ flow, ...MINIMAL[flow], ...changes });
const problems = (flow: Flow, changes: Record<string, unknown>) =>
  parse(flow, changes).error?.issues.map(({ code, path, ...issue }) =>
    code === "unrecognized_keys" ? `unknown ${(issue as { keys: string[] }).keys}` : path.join(".")
  );
const FLOW_NAMES = Object.keys(FLOWS) as Flow[];

for (const flow of FLOW_NAMES) {
  Deno.test(`${flow}: what has no default is required, and nothing else`, () => {
    ok(parse(flow).success);
    for (const field of Object.keys(MINIMAL[flow])) {
      deepStrictEqual(problems(flow, { [field]: undefined }), [field]);
    }
  });

  Deno.test(`${flow}: a configuration with all of its defaults reads back unchanged`, () => {
    const { data: whole } = parse(flow);
    deepStrictEqual(Config.parse(whole), whole);
    deepStrictEqual(FLOWS[flow].parse(whole), whole);
  });
}

Deno.test("each flow chooses its algorithm's default", () => {
  const names = FLOW_NAMES.map((flow) => {
    const { data } = parse(flow);
    return data && "algorithm" in data ? data.algorithm.name : null;
  });
  deepStrictEqual(Object.fromEntries(FLOW_NAMES.map((flow, i) => [flow, names[i]])), {
    online: "grpo",
    supervised: "sft",
    evaluate: null,
    quickstart: "grpo",
    preference: "dpo",
    prepare: null,
  });
});

Deno.test("a flow refuses what belongs to a different one", () => {
  deepStrictEqual(problems("evaluate", { checkpoints: {} }), ["unknown checkpoints"]);
  deepStrictEqual(problems("quickstart", { trainer: { optimizer: {} } }), ["unknown optimizer"]);
  deepStrictEqual(problems("preference", { reference: { refresh_rounds: 1 } }), [
    "unknown refresh_rounds",
  ]);
  deepStrictEqual(problems("supervised", { prompts_per_round: 1 }), ["unknown prompts_per_round"]);
});

Deno.test("training without a reward is supervised alone", () => {
  const { data } = parse("supervised");
  deepStrictEqual(data?.flow === "supervised" && data.reward, []);
  for (const flow of ["online", "evaluate", "quickstart"] as const) {
    deepStrictEqual(problems(flow, { reward: [] }), ["reward"]);
  }
});

Deno.test("a flow that does not exist is refused at its field", () => {
  const { error } = Config.safeParse({ flow: "offline" });
  deepStrictEqual(error?.issues.map(({ path }) => path), [["flow"]]);
  strictEqual(Config.safeParse({}).success, false);
});
