import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ALGORITHMS } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { dr_grpo } = ALGORITHMS;

Deno.test("Dr. GRPO's advantage is the reward less its group's mean", () => {
  const round = { reward: [1, 0, 0, 5], group: [0, 0, 0, 1], length: [1, 1, 1, 1] };
  near(worked(dr_grpo).credit(round).advantage, [2 / 3, -1 / 3, -1 / 3, 0]);
});

Deno.test("Dr. GRPO's loss is the mean over completions of the sum of their clipped tokens", () => {
  const rows = [
    { pi: [1, 2], inputs: { advantage: 1 } }, // −(1 + 1.2)
    { pi: [1], inputs: { advantage: -0.5 } }, // 0.5
  ];
  near(worked(dr_grpo).loss(rows).loss, (-2.2 + 0.5) / 2);
  near(worked(dr_grpo, { loss_denominator: 4 }).loss(rows).loss, (-2.2 + 0.5) / 2 / 4);
});

Deno.test("Dr. GRPO has no deviation to add to, sums over tokens and needs groups of two", () => {
  deepStrictEqual(defaults(dr_grpo, "clip_low", "clip_high", "aggregation", "loss_denominator"), {
    clip_low: 0.2,
    clip_high: 0.2,
    aggregation: "sequence_mean_token_sum",
    loss_denominator: 1,
  });
  strictEqual("std_epsilon" in dr_grpo.config.shape, false);
  strictEqual(dr_grpo.group_min, 2);
});

Deno.test("Dr. GRPO refuses a denominator that its aggregation does not divide by", () => {
  deepStrictEqual(refusals(dr_grpo, { aggregation: "token_mean", loss_denominator: 8 }), [
    "loss_denominator: has no effect with aggregation token_mean: leave it out, or use " +
    "sequence_mean_token_sum or token_sum",
  ]);
});
