import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { evaluationText } from "../../cli/display/evaluation_text.ts";
import { tableOf } from "../../data/mod.ts";
import { type Evaluation, passAtK, passHatK } from "../../flows/mod.ts";
import { evaluate } from "../../flows/evaluate.ts";
import { EvaluateConfig } from "../../configs/mod.ts";
import { FakeSampler } from "../../testing/mod.ts";
import { execute, stores } from "./fixtures.ts";

Deno.test("evaluate counts a sample as right if the first reward gives 1", async () => {
  const { store, artifacts, dir, model } = await stores();
  const config = EvaluateConfig.parse({
    flow: "evaluate",
    model: { path: model },
    data: { eval: [{ path: "e" }] },
    reward: [{ name: "exact_match" }, { name: "length", unit: "characters", max: 8, weight: 0.5 }],
    evaluate: { problems: 4, samples_per_prompt: 2, greedy: true },
  });
  // Rows answer their own number: 0 and 1 are always right, 2 with its second sample, 3 never.
  const complete = ({ draw, sample }: { draw: number; sample: number }) =>
    draw < 2 || (draw === 2 && sample === 1) ? String(draw) : "no";
  const { outcome } = await execute(evaluate, config, {
    store,
    artifacts,
    dir,
    samplers: [new FakeSampler({ complete })],
  });
  strictEqual(outcome.status, "done");
  const { evaluations } =
    (outcome as unknown as { output: { evaluations: Record<string, unknown>[] } }).output;
  const [greedy, sampled] = evaluations;
  deepStrictEqual(
    [greedy!.name, greedy!.greedy, greedy!.samples_per_problem, greedy!.avg_at_k],
    ["eval_greedy", true, 1, 0.5],
  );
  deepStrictEqual(
    [sampled!.name, sampled!.problems, sampled!.avg_at_k, sampled!.pass_at_1, sampled!.pass_at_k],
    ["eval_sampled", 4, 0.625, 0.625, 0.75],
  );
  // No draws of the ledger.
  deepStrictEqual(store.rows("run").filter(({ kind }) => kind === "round"), []);
});

type Answer = { draw: number; sample: number };
/** An evaluation of four problems by this reward; answers 0 to 3 are right for draws 0 to 3. */
async function evaluated(
  overrides: Record<string, unknown>,
  complete: (at: Answer) => string,
  answers = [0, 1, 2, 3],
  broken = 0,
) {
  const { store, artifacts, dir, model } = await stores();
  const config = EvaluateConfig.parse({
    flow: "evaluate",
    model: { path: model },
    data: { eval: [{ path: "e" }], on_long_prompt: "unchecked" },
    reward: [{ name: "exact_match" }],
    ...overrides,
  });
  const rows = answers.map((answer, n) => ({
    row_id: `row-${n}`,
    prompt: `say ${n}`,
    columns: { n },
    ...(answer >= 0 && { answer: n < broken ? "no number" : String(answer) }),
  }));
  const samplers = [new FakeSampler({ complete })];
  const tables = { eval: tableOf(rows, "rows") };
  const { outcome } = await execute(evaluate, config, {
    store,
    artifacts,
    dir,
    samplers,
    rows: tables,
  });
  if (outcome.status !== "done") return { error: JSON.stringify(outcome) };
  return {
    result: (outcome as unknown as { output: { evaluations: Evaluation[] } }).output.evaluations.at(
      -1,
    )!,
  };
}

Deno.test("evaluate leaves ungraded samples out of the share of right ones", async () => {
  const { result } = await evaluated({}, ({ draw }) => draw === 3 ? "no" : String(draw), [
    0,
    -1,
    -1,
    3,
  ]);
  const { graded, right, failed, ungraded, avg_at_k, mean_reward } = result!;
  deepStrictEqual([graded, right, failed, ungraded, avg_at_k, mean_reward], [2, 1, 0, 2, 0.5, 0.5]);
  match(
    evaluationText(result!),
    /^0\.500 right \(1 of 2\), 95 % .*, failed 0, ungraded 2, mean reward 0\.500$/,
  );
});

Deno.test("evaluate fails the run if its grader fails too often", async () => {
  const reward = [{ name: "gsm8k" }]; // A reference answer that is no number breaks it.
  const broken = (share: number, failed_fraction_max: number) =>
    evaluated({ reward, evaluate: { failed_fraction_max } }, () => "#### 1", [0, 1, 2, 3], share);
  match(
    (await broken(4, 0.5)).error!,
    /the grader failed on 4 of 4 samples, more than evaluate.failed_fraction_max/,
  );
  match((await broken(4, 1)).error!, /the grader failed on 4 of 4 samples/);
  match((await broken(3, 0.5)).error!, /the grader failed on 3 of 4 samples/);
  const { graded, right, failed, failures } = (await broken(2, 0.5)).result!;
  deepStrictEqual([graded, right, failed, failures], [2, 0, 2, { reward_error: 2 }]);
  const { error } = await evaluated({ reward: [{ name: "exact_match" }] }, () => "x", [
    -1,
    -1,
    -1,
    -1,
  ]);
  match(error!, /none of its 4 samples can be graded/);
});

Deno.test("evaluate gives pass@k for every k, maj@k and intervals", async () => {
  const settings = { evaluate: { samples_per_prompt: 4, greedy: false } };
  // 0, 1, 2 and 3 of 4 are right.
  const complete = ({ draw, sample }: Answer) => sample < draw ? String(draw) : "no";
  const { result } = await evaluated(settings, complete);
  const expected = (estimate: typeof passAtK) =>
    [1, 2, 3, 4].map((k) => [0, 1, 2, 3].reduce((sum, c) => sum + estimate(4, c, k), 0) / 4);
  deepStrictEqual(result!.pass_at, expected(passAtK));
  deepStrictEqual(result!.pass_hat, expected(passHatK));
  // Nobody, nobody, two of two sides and everybody agrees on the right answer.
  strictEqual(result!.maj_at_k, (0 + 0 + 0.5 + 1) / 4);
  deepStrictEqual(Object.keys(result!.intervals!).toSorted(), [
    "avg_at_k",
    "maj_at_k",
    "mean_reward",
    ...["pass_at_", "pass_hat_"].flatMap((name) => [1, 2, 3, 4].map((k) => name + k)),
  ]);
  match(
    evaluationText(result!),
    /, 95 % from 0\.\d+ to 0\.\d+, .*, pass@4 0\.750, pass\^2 0\.167, .*, maj@4 0\.375$/,
  );
  const evaluate = { ...settings.evaluate, majority: false };
  const off = await evaluated({ evaluate }, complete);
  strictEqual(off.result!.maj_at_k, null);
  const reward = [{ name: "length", unit: "characters", max: 10, prefer: "long" }];
  const long = await evaluated(
    { reward, evaluate: { right_at: 0.9 } },
    ({ draw }) => "x".repeat(8 + draw % 2),
  );
  deepStrictEqual([long.result!.right, long.result!.mean_reward], [2, 0.85]);
  deepStrictEqual(Object.keys(long.result!.intervals!).toSorted(), [
    "avg_at_k",
    "mean_reward",
    "pass_at_1",
  ]);
  const unsaid = await evaluated({ reward }, () => "x");
  deepStrictEqual([unsaid.result!.right, unsaid.result!.avg_at_k, unsaid.result!.mean_reward], [
    null,
    null,
    0.1,
  ]);
});
