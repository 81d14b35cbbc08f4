import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ALGORITHMS } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { cispo } = ALGORITHMS;

/** Ratios 8 and 1/2; log-probabilities ln 1/2 of both tokens. */
const ROWS = [
  { pi: [0.5], old: [1 / 16], inputs: { advantage: 1 } },
  { pi: [0.5], old: [1], inputs: { advantage: -1 } },
];

Deno.test("CISPO's advantage is GRPO's z-score", () => {
  const { credit } = worked(cispo, { std_epsilon: 0 });
  near(credit({ reward: [1, 0], length: [1, 1] }).advantage, [Math.SQRT1_2, -Math.SQRT1_2]);
});

Deno.test("CISPO weighs log-probabilities by the clipped ratio, and averages over tokens", () => {
  // −5 · 1 · ln 1/2 and −1/2 · −1 · ln 1/2.
  const { loss, metrics } = worked(cispo).loss(ROWS);
  near(loss, (5 * Math.LN2 - 0.5 * Math.LN2) / 2);
  near(metrics["policy/clip_fraction"]!, 1 / 2);
  near(worked(cispo, { clip_low: 0.2 }).loss(ROWS).loss, (5 - 0.8) / 2 * Math.LN2);
});

Deno.test("CISPO's default bounds the weight by 5, and not from below", () => {
  deepStrictEqual(defaults(cispo, "clip_low", "clip_high", "aggregation", "kl_coef"), {
    clip_low: null,
    clip_high: 4,
    aggregation: "token_mean",
    kl_coef: 0,
  });
  strictEqual(cispo.group_min, 2);
});

Deno.test("CISPO refuses a lower bound above its upper one", () => {
  deepStrictEqual(refusals(cispo, { clip_low: 0.2, clip_high: -0.5 }), [
    "clip_low: must be at least -clip_high (0.5): the weight is at least 1 - clip_low, at most " +
    "1 + clip_high",
  ]);
  deepStrictEqual(refusals(cispo, { clip_low: 0.5, clip_high: -0.5 }), []);
});
