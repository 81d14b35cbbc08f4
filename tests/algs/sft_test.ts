import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { AlgorithmChoice, ALGORITHMS, dropoutOf, traceAlgorithm } from "../../algs/mod.ts";
import { near, refusals, worked } from "./worked.ts";

const { sft } = ALGORITHMS;

Deno.test("SFT's loss is the mean negative log-likelihood of all trained tokens", () => {
  const rows = [{ pi: [0.5] }, { pi: [0.25, 0.25, 0.001], mask: [1, 1, 0] }];
  near(worked(sft).loss(rows).loss, (1 + 2 + 2) * Math.LN2 / 3);
});

Deno.test("SFT reads nothing but the policy's log-probabilities, and assigns no credit", () => {
  deepStrictEqual(traceAlgorithm(sft, {}).loss.inputs, ["logp", "n_tokens"]);
  strictEqual("credit" in sft, false);
});

Deno.test("SFT keeps the model's dropout on, and has no setting", () => {
  strictEqual(dropoutOf(AlgorithmChoice.parse({ name: "sft" })), true);
  deepStrictEqual(refusals(sft, { lr: 1 }), [': Unrecognized key: "lr"']);
});
