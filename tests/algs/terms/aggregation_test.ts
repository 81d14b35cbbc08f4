import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { z } from "zod";
import {
  aggregate,
  aggregationSettings,
  checkAggregation,
  defineAlgorithm,
  evaluate,
  type EvaluatedStep,
  traceAlgorithm,
} from "../../../algs/mod.ts";

const Settings = z.strictObject(aggregationSettings("token_mean")).superRefine(checkAggregation);
const plain = defineAlgorithm({
  name: "plain",
  config: Settings,
  loss: (x, c) => ({ loss: aggregate(x.logp, x, c) }),
});

/**
 * Token losses of three completions in two groups, one token masked, and a completion without a
 * token.
 */
const step: EvaluatedStep = {
  sequences: [
    { group: 0, mask: [1, 1, 0], inputs: { logp: [6, 18, 99] } },
    { group: 0, mask: [1, 1, 1, 1], inputs: { logp: [12, 12, 12, 60] } },
    { group: 1, mask: [1, 1], inputs: { logp: [30, 42] } },
    { group: 1, mask: [0], inputs: { logp: [99] } },
  ],
};

function aggregated(changes: z.input<typeof Settings>): number {
  return evaluate(traceAlgorithm(plain, changes).loss, step).loss;
}

Deno.test("aggregate() counts tokens, completions or groups that have a token", () => {
  strictEqual(aggregated({ aggregation: "token_mean" }), 192 / 8);
  strictEqual(aggregated({ aggregation: "sequence_mean" }), (12 + 24 + 36) / 3);
  strictEqual(aggregated({ aggregation: "sequence_mean_token_sum" }), (24 + 96 + 72) / 3);
  strictEqual(
    aggregated({ aggregation: "sequence_mean_token_sum", loss_denominator: 4 }),
    (24 + 96 + 72) / 3 / 4,
  );
  strictEqual(aggregated({ aggregation: "token_sum" }), 24 + 96 + 72);
  strictEqual(aggregated({ aggregation: "token_sum", loss_denominator: 4 }), (24 + 96 + 72) / 4);
  strictEqual(aggregated({ aggregation: "group_mean" }), ((24 + 96) / 6 + 72 / 2) / 2);
});

Deno.test("all aggregations agree if completions are equally long and groups equally large", () => {
  const even = {
    sequences: [0, 0, 1, 1].map((group, i) => ({
      group,
      mask: [1, 1],
      inputs: { logp: [i, 3 - i] },
    })),
  };
  const values = (["token_mean", "sequence_mean", "group_mean"] as const).map((aggregation) =>
    evaluate(traceAlgorithm(plain, { aggregation }).loss, even).loss
  );
  const sum = evaluate(
    traceAlgorithm(plain, { aggregation: "sequence_mean_token_sum", loss_denominator: 2 }).loss,
    even,
  ).loss;
  deepStrictEqual([...values, sum], [1.5, 1.5, 1.5, 1.5]);
});

Deno.test("checkAggregation() refuses a denominator that divides nothing", () => {
  const { error } = Settings.safeParse({ loss_denominator: 8 });
  deepStrictEqual(error?.issues.map(({ path, message }) => [path, message]), [[
    ["loss_denominator"],
    "has no effect with aggregation token_mean: leave it out, or use " +
    "sequence_mean_token_sum or token_sum",
  ]]);
});
