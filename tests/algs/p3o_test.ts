import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ALGORITHMS } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { p3o } = ALGORITHMS;

/** Weights 1 and 3: an effective sample size of (1 + 3)² ÷ (2 · (1 + 9)) = 0.8. */
const ROWS = [
  { pi: [0.5], behaviour: [0.5], inputs: { advantage: 1 } },
  { pi: [0.25], behaviour: [1 / 12], inputs: { advantage: -1 } },
];
/** −0.8 · 1 · ln 1/2 and −0.8 · −1 · ln 1/4: both weights are capped. */
const POLICY = (0.8 * Math.LN2 - 0.8 * 2 * Math.LN2) / 2;

Deno.test("P3O's advantage is GRPO's z-score", () => {
  const { credit } = worked(p3o, { std_epsilon: 0 });
  near(credit({ reward: [1, 0], length: [1, 1] }).advantage, [Math.SQRT1_2, -Math.SQRT1_2]);
});

Deno.test("P3O caps weights by the effective sample size and pulls by what it lacks", () => {
  // d = ln 3 on the second token, where k3 is 1/3 − 1 + ln 3; the pull weighs 1 − 0.8.
  const { loss, metrics } = worked(p3o).loss(ROWS);
  near(loss, POLICY + 0.2 * (1 / 3 - 1 + Math.log(3)) / 2);
  near(metrics["policy/ess"]!, 0.8);
});

Deno.test("P3O pulls forward by w - 1 - log w", () => {
  near(worked(p3o, { pull: "forward" }).loss(ROWS).loss, POLICY + 0.2 * (3 - 1 - Math.log(3)) / 2);
});

Deno.test("P3O on samples of the policy itself is the policy gradient", () => {
  const rows = ROWS.map((row) => ({ ...row, behaviour: row.pi }));
  const { loss, metrics } = worked(p3o).loss(rows);
  near(loss, (Math.LN2 - 2 * Math.LN2) / 2);
  strictEqual(metrics["policy/ess"], 1);
});

Deno.test("P3O pulls by k3, averages over tokens, and has no clip and no importance weight", () => {
  deepStrictEqual(defaults(p3o, "pull", "aggregation", "kl_coef", "entropy_coef"), {
    pull: "k3",
    aggregation: "token_mean",
    kl_coef: 0,
    entropy_coef: 0,
  });
  const absent = ["clip_low", "clip_high", "importance"].filter((name) => name in p3o.config.shape);
  deepStrictEqual(absent, []);
  strictEqual(p3o.group_min, 2);
});

Deno.test("P3O refuses a denominator that divides nothing, and a KL without effect", () => {
  const wrong = { loss_denominator: 8, kl_coef: 0.1, kl_estimator: "k1" };
  const places = refusals(p3o, wrong).map((text) => text.split(":")[0]);
  deepStrictEqual(places, ["loss_denominator", "kl_estimator"]);
});
