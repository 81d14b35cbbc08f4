import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ALGORITHMS, traceAlgorithm } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { reinforce } = ALGORITHMS;
const ROUND = { reward: [1, 0], length: [2, 1] };

Deno.test("REINFORCE's advantage is the discounted reward to go", () => {
  const { credit } = worked(reinforce, { baseline: "none", gamma: 0.5 });
  deepStrictEqual(credit(ROUND).advantage, [[0.5, 1], [0]]);
});

Deno.test("REINFORCE's baseline is the mean reward of the round's completions", () => {
  deepStrictEqual(worked(reinforce).credit(ROUND).advantage, [[0.5, 0.5], [-0.5]]);
});

Deno.test("REINFORCE's reward is less the KL of each token", () => {
  const settings = { baseline: "none", kl_coef: 0.5, kl_in: "reward", kl_estimator: "k1" };
  const scored = { old_logp: [[-1, -1], [-1]], ref_logp: [[-2, -1], [-1]] };
  // The first token costs 0.5, which the tokens after it do not bear.
  const { advantage } = worked(reinforce, settings).credit({ ...ROUND, ...scored });
  deepStrictEqual(advantage, [[0.5, 1], [0]]);
});

Deno.test("REINFORCE's loss is the mean over completions of the sum of -A log pi", () => {
  const rows = [
    { pi: [0.5, 0.25], inputs: { advantage: [1, 2] } }, // ln 2 + 2 · 2 ln 2
    { pi: [0.5], inputs: { advantage: [-1] } }, // −ln 2
  ];
  near(worked(reinforce).loss(rows).loss, (5 - 1) * Math.LN2 / 2);
});

Deno.test("REINFORCE has no ratio, and takes groups of one", () => {
  deepStrictEqual(traceAlgorithm(reinforce, {}).loss.inputs, ["advantage", "logp", "n_sequences"]);
  strictEqual(reinforce.group_min, undefined);
});

Deno.test("REINFORCE's defaults are the round's mean, no discount and sums over tokens", () => {
  deepStrictEqual(defaults(reinforce, "baseline", "gamma", "aggregation", "kl_coef"), {
    baseline: "round_mean",
    gamma: 1,
    aggregation: "sequence_mean_token_sum",
    kl_coef: 0,
  });
});

Deno.test("REINFORCE refuses a KL in the advantage, and a discount above 1", () => {
  const wrong = refusals(reinforce, { kl_in: "advantage", gamma: 1.5 });
  deepStrictEqual(wrong.map((text) => text.split(":")[0]), ["gamma", "kl_in"]);
});
