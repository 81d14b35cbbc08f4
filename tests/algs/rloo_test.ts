import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { AlgorithmChoice, ALGORITHMS, ratioBounds } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { rloo } = ALGORITHMS;

/** Ratios of whole completions: 1.8, and 1. */
const ROWS = [
  { pi: [1.5, 1.2], inputs: { advantage: 1 } }, // −1.2
  { pi: [2, 0.5], inputs: { advantage: -1 } }, // 1
];

Deno.test("RLOO's advantage is the reward less the mean of the others in its group", () => {
  const round = { reward: [1, 0, 2], length: [1, 1, 1] };
  near(worked(rloo).credit(round).advantage, [1 - 1, 0 - 1.5, 2 - 0.5]);
});

Deno.test("RLOO takes the KL of whole completions from their rewards before the baseline", () => {
  // Log-ratios 1 + 1 and 0: rewards 1 − 0.05 · 2 and 0.
  const scored = { old_logp: [[-1, -1], [-1]], ref_logp: [[-2, -2], [-1]] };
  near(worked(rloo).credit({ reward: [1, 0], length: [2, 1], ...scored }).advantage, [0.9, -0.9]);
});

Deno.test("RLOO's loss clips the ratio of a completion, and averages over completions", () => {
  near(worked(rloo).loss(ROWS).loss, (-1.2 + 1) / 2);
});

Deno.test("RLOO's KL and entropy in the loss are sums over a completion's tokens", () => {
  const rows = ROWS.map((row) => ({
    ...row,
    ref: row.pi.map((p) => p / 2), // d = ln 2 on every token
    inputs: { ...row.inputs, entropy: [3, 5] },
  }));
  const settings = { kl_in: "loss", kl_estimator: "k2", kl_coef: 0.1, entropy_coef: 0.01 };
  const k2 = Math.LN2 ** 2 / 2;
  near(worked(rloo, settings).loss(rows).loss, -0.1 + 0.1 * 2 * k2 - 0.01 * 8);
});

Deno.test("RLOO's importance weight is of a whole completion, and weighs its term alone", () => {
  // Weights 1 ÷ (0.5 · 0.8) = 2.5, truncated at 2, and 1.
  const rows = [{ ...ROWS[0]!, behaviour: [0.5, 0.8] }, ROWS[1]!];
  near(worked(rloo, { importance: "sequence_truncate" }).loss(rows).loss, (2 * -1.2 + 1) / 2);
  near(worked(rloo, { importance: "sequence_mask" }).loss(rows).loss, (0 + 1) / 2);
});

Deno.test("RLOO's defaults are k1 in the reward at 0.05, and one aggregation", () => {
  deepStrictEqual(defaults(rloo, "clip_low", "clip_high", "kl_coef", "kl_in", "kl_estimator"), {
    clip_low: 0.2,
    clip_high: 0.2,
    kl_coef: 0.05,
    kl_in: "reward",
    kl_estimator: "k1",
  });
  strictEqual("aggregation" in rloo.config.shape, false);
  const { ratio } = ratioBounds(AlgorithmChoice.parse({ name: "rloo" }));
  deepStrictEqual([ratio, rloo.group_min], ["sequence", 2]);
});

Deno.test("RLOO refuses weights of tokens, and k1 in the loss", () => {
  const places = (settings: Record<string, unknown>) =>
    refusals(rloo, settings).map((text) => text.split(":")[0]);
  deepStrictEqual(places({ importance: "token_truncate" }), ["importance"]);
  deepStrictEqual(places({ kl_in: "loss" }), ["kl_estimator"]);
  deepStrictEqual(places({ kl_in: "advantage" }), ["kl_in"]);
});
