import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ALGORITHMS } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { grpo } = ALGORITHMS;
const a = Math.SQRT1_2;

/** Ratios 1.5, 1 of a good sample and 0.5 of a bad one. */
const ROWS = [
  { pi: [1.5, 1], inputs: { advantage: a } },
  { pi: [0.5], inputs: { advantage: -a } },
];

Deno.test("GRPO's advantage is the reward's distance from its group's mean in deviations", () => {
  // Mean 1/2, and a variance of (1/4 + 1/4) ÷ (2 − 1).
  const { credit } = worked(grpo, { std_epsilon: 0 });
  near(credit({ reward: [1, 0], length: [2, 1] }).advantage, [a, -a]);
  const wide = worked(grpo, { std_epsilon: a });
  near(wide.credit({ reward: [1, 0], length: [2, 1] }).advantage, [a / 2, -a / 2]);
  near(credit({ reward: [3, 3, 1], group: [0, 0, 1], length: [1, 1, 1] }).advantage, [0, 0, 0]);
});

Deno.test("GRPO's loss is the mean over completions of the mean of their clipped tokens", () => {
  // −(1.2 + 1) a ÷ 2 of the good sample, where 1.5 is clipped; 0.8 a of the bad one, where 0.5 is.
  const { loss, metrics } = worked(grpo).loss(ROWS);
  near(loss, (-1.1 * a + 0.8 * a) / 2);
  near(metrics["policy/clip_fraction"]!, 2 / 3);
});

Deno.test("GRPO with a KL adds k3 to each token", () => {
  // d = ln 2 on every token: k3 = 1/2 − 1 + ln 2.
  const rows = ROWS.map((row) => ({ ...row, ref: row.pi.map((p) => p / 2) }));
  const { loss, metrics } = worked(grpo, { kl_coef: 0.04 }).loss(rows);
  near(loss, (-1.1 * a + 0.8 * a) / 2 + 0.04 * (Math.LN2 - 0.5));
  near(metrics["policy/kl_ref"]!, Math.LN2 - 0.5);
});

Deno.test("GRPO with a dual clip bounds the loss of a bad token", () => {
  const rows = [{ pi: [3], inputs: { advantage: -1 } }];
  near(worked(grpo).loss(rows).loss, 3);
  near(worked(grpo, { dual_clip: 2 }).loss(rows).loss, 2);
});

Deno.test("GRPO's defaults are the paper's, without its KL", () => {
  deepStrictEqual(defaults(grpo, "clip_low", "clip_high", "dual_clip", "aggregation", "kl_coef"), {
    clip_low: 0.2,
    clip_high: 0.2,
    dual_clip: null,
    aggregation: "sequence_mean",
    kl_coef: 0,
  });
  strictEqual(defaults(grpo, "std_epsilon").std_epsilon, 1e-6);
  strictEqual(grpo.group_min, 2);
});

Deno.test("GRPO refuses a dual clip within the clip, and a KL under the deviation", () => {
  deepStrictEqual(refusals(grpo, { dual_clip: 1.1 }).map((text) => text.split(":")[0]), [
    "dual_clip",
  ]);
  const scaled = { kl_coef: 0.1, kl_in: "reward", kl_estimator: "k1" };
  deepStrictEqual(refusals(grpo, scaled).map((text) => text.split(":")[0]), ["kl_in"]);
  deepStrictEqual(refusals(grpo, { ...scaled, kl_scaled: true }), []);
});
