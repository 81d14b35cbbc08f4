import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ALGORITHMS } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const algorithm = ALGORITHMS.reinforce_plus_plus_baseline;

Deno.test("REINFORCE++ with a baseline whitens rewards less their group's mean over tokens", () => {
  // ±1/2, once and three times: mean −1/4, variance (0.75² + 3 · 0.25²) ÷ 4 = 3/16.
  const { advantage } = worked(algorithm).credit({ reward: [1, 0], length: [1, 3] });
  near(advantage, [Math.sqrt(3), -1 / Math.sqrt(3)], 1e-6);
});

Deno.test("REINFORCE++ with a baseline adds k2 to the clipped term of each token", () => {
  // −1.2 and 0.5, and half of (ln 2)² on both tokens.
  const rows = [{ pi: [1.5, 0.5], ref: [0.75, 1], inputs: { advantage: [1, -1] } }];
  near(worked(algorithm, { kl_coef: 0 }).loss(rows).loss, (-1.2 + 0.8) / 2);
  const held = worked(algorithm, { kl_coef: 0.5 }).loss(rows);
  near(held.loss, (-1.2 + 0.8) / 2 + 0.5 * Math.LN2 ** 2 / 2);
  near(held.metrics["policy/kl_ref"]!, Math.LN2 ** 2 / 2);
});

Deno.test("REINFORCE++ with a baseline has k2 in its loss by default, and groups of two", () => {
  deepStrictEqual(defaults(algorithm, "kl_coef", "kl_in", "kl_estimator", "aggregation"), {
    kl_coef: 0.01,
    kl_in: "loss",
    kl_estimator: "k2",
    aggregation: "token_mean",
  });
  strictEqual(algorithm.group_min, 2);
});

Deno.test("REINFORCE++ with a baseline refuses k2 outside the loss", () => {
  deepStrictEqual(refusals(algorithm, { kl_in: "advantage" }), [
    "kl_estimator: k2 in the advantage is biased as a reward: use k1 or k3",
  ]);
  deepStrictEqual(refusals(algorithm, { kl_in: "advantage", kl_estimator: "k1" }), []);
});
