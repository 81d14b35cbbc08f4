import { deepStrictEqual } from "node:assert/strict";
import { AlgorithmChoice, ALGORITHMS, OnlineAlgorithm, refillOf } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { dapo } = ALGORITHMS;

Deno.test("DAPO's advantage compares rewards less the penalty of a long completion", () => {
  // Lengths 2, 3 of at most 3 with a buffer of 2: penalties 1/2, 1. Rewards 1, 1 become 1/2, 0.
  const settings = { overlong_buffer: 2, overlong_length_max: 3, std_epsilon: 0 };
  const round = { reward: [1, 1], length: [2, 3] };
  near(worked(dapo, settings).credit(round).advantage, [Math.SQRT1_2, -Math.SQRT1_2]);
  near(worked(dapo).credit(round).advantage, [0, 0]);
});

Deno.test("DAPO's loss is the mean over groups of the mean of their clipped tokens", () => {
  const rows = [
    { group: 0, pi: [1], inputs: { advantage: 1 } }, // −1
    { group: 0, pi: [1, 1, 0.5], inputs: { advantage: -1 } }, // 1 + 1 + 0.8
    { group: 1, pi: [1.5], inputs: { advantage: 1 } }, // −1.28
  ];
  near(worked(dapo).loss(rows).loss, ((-1 + 2.8) / 4 - 1.28) / 2);
  const token_mean = worked(dapo, { aggregation: "token_mean" });
  near(token_mean.loss(rows).loss, (-1 + 2.8 - 1.28) / 5);
});

Deno.test("DAPO's defaults are the paper's clip, ten draws a round and no penalty", () => {
  deepStrictEqual(defaults(dapo, "clip_low", "clip_high", "aggregation", "overlong_buffer"), {
    clip_low: 0.2,
    clip_high: 0.28,
    aggregation: "group_mean",
    overlong_buffer: 0,
  });
  deepStrictEqual(refillOf(OnlineAlgorithm.parse({ name: "dapo" })), {
    batches_max: 10,
    surplus: "discard",
  });
  deepStrictEqual(refillOf(AlgorithmChoice.parse({ name: "dapo", refill_batches_max: 0 })), null);
});

Deno.test("DAPO refuses a penalty without an end, and one longer than a completion", () => {
  deepStrictEqual(refusals(dapo, { overlong_buffer: 8 }), [
    "overlong_buffer: needs overlong_length_max, the length with the full penalty: " +
    "usually sampler.tokens_max",
  ]);
  deepStrictEqual(refusals(dapo, { overlong_buffer: 8, overlong_length_max: 4 }), [
    "overlong_buffer: must be at most overlong_length_max (4)",
  ]);
});
