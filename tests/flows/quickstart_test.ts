import { deepStrictEqual, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { Policy } from "../../data/mod.ts";
import type { Evaluation } from "../../flows/mod.ts";
import { quickstart } from "../../flows/quickstart.ts";
import { valuesOf } from "./stages/alone.ts";
import { execute, rowsOf, smallQuickstart, stores } from "./fixtures.ts";

type Result = {
  policy: Policy;
  exported: { version: string; dir: string };
  evaluations: Evaluation[];
};

const home = await stores();
const { outcome, trainer, samplers } = await execute(
  quickstart,
  smallQuickstart({ rounds: 2, every_rounds: 1 }),
  { ...home, rows: { train: rowsOf(16), eval: rowsOf(2) } },
);
strictEqual(outcome.status, "done", JSON.stringify(outcome));
const { policy, exported, evaluations } = (outcome as unknown as { output: Result }).output;
const rows = home.store.rows("run");
const outputs = valuesOf(rows, "result") as Record<string, { output: unknown }>;

Deno.test("quickstart creates its model, and starts the warm-up from it", () => {
  strictEqual(trainer.calls[0]!.op, "create_model");
  const { path } = outputs.create_model!.output as { path: string };
  strictEqual(path, `${home.dir}/run/model`);
  strictEqual((outputs.prepare_raw!.output as Policy).model_path, path);
});

Deno.test("quickstart's reinforcement learning starts anew from the warm model", () => {
  const start = outputs.prepare_policy!.output as Policy;
  deepStrictEqual([start.number, start.model_path], [0, `${home.dir}/run/warm`]);
  strictEqual(policy.model_path, start.model_path);
  notStrictEqual(start.version, (outputs.prepare_raw!.output as Policy).version);
});

Deno.test("quickstart evaluates before and after learning, greedily", () => {
  deepStrictEqual(evaluations.map(({ name }) => name), ["before_greedy", "after_greedy"]);
  const generated = samplers[0]!.calls.filter(({ op, key }) =>
    op === "generate" && !key.startsWith("round/")
  );
  deepStrictEqual(
    generated.map(({ args }) => {
      const { samples_per_prompt, sampling } = args as {
        samples_per_prompt: number;
        sampling: { temperature: number };
      };
      return [samples_per_prompt, sampling.temperature];
    }),
    [[1, 0], [1, 0]],
  );
});

Deno.test("quickstart exports the policy that the last round trained", () => {
  strictEqual(exported.version, policy.version);
  ok(policy.number > 0); // A round without different rewards trains nothing.
});
