import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { evaluationText } from "../../../../cli/display/evaluation_text.ts";
import { SupervisedConfig } from "../../../../configs/mod.ts";
import { tableOf } from "../../../../data/mod.ts";
import type { LossEvaluation } from "../../../../flows/mod.ts";
import { supervised } from "../../../../flows/supervised.ts";
import { execute, stores } from "../../fixtures.ts";

Deno.test("evaluateLoss() measures held-out completions, without a reward", async () => {
  const { store, artifacts, dir, model } = await stores();
  const config = SupervisedConfig.parse({
    flow: "supervised",
    rounds: 2,
    rows_per_round: 2,
    model: { path: model },
    data: { train: [{ path: "t" }], eval: [{ path: "e" }] },
    evaluate: { loss: true, problems: 3 },
  });
  const rows = Array.from({ length: 4 }, (_, n) => ({
    row_id: `row-${n}`,
    prompt: "p",
    completion: "c",
    columns: {},
  }));
  const table = tableOf(rows, "rows");
  const options = { store, artifacts, dir, rows: { train: table, eval: table } };
  const { outcome, samplers } = await execute(supervised, config, options);
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const evaluations =
    (outcome as unknown as { output: { evaluations: LossEvaluation[] } }).output.evaluations;
  deepStrictEqual(evaluations.map(({ name, rows }) => [name, rows]), [
    ["before_loss", 3],
    ["after_loss", 3],
  ]);
  ok(evaluations[0]!.loss !== evaluations[1]!.loss);
  ok(evaluationText(evaluations[0]!).endsWith(" over 3 rows"));
  deepStrictEqual(samplers.length, 1);
  await Deno.remove(dir, { recursive: true });
});
