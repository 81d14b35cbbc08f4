import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { AlgorithmChoice, ALGORITHMS, needsOf } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { reinforce_plus_plus } = ALGORITHMS;

/** A log-ratio to the reference of 2 on the last token of the good completion. */
const ROUND = {
  reward: [1, 0],
  length: [2, 1],
  old_logp: [[-1, -1], [-1]],
  ref_logp: [[-1, -3], [-1]],
};

Deno.test("REINFORCE++'s advantage is the whitened reward to go, less the KL", () => {
  // 1 − 0.25 · 2 to go from both tokens, and 0: mean 1/3, deviation √(1/18).
  const { advantage, metrics } = worked(reinforce_plus_plus, { kl_coef: 0.25 }).credit(ROUND);
  near(advantage, [Math.SQRT1_2, Math.SQRT1_2, -Math.SQRT2], 1e-6);
  strictEqual(metrics!["policy/kl_ref_completion"], 1);
});

Deno.test("REINFORCE++ discounts by gamma before it whitens", () => {
  // 1/2 and 1 to go of one completion, 0 of the other: mean 1/2, deviation √(1/6).
  const { advantage } = worked(reinforce_plus_plus, { gamma: 0.5, kl_coef: 0 }).credit(ROUND);
  near(advantage, [0, Math.sqrt(1.5), -Math.sqrt(1.5)], 1e-6);
});

Deno.test("REINFORCE++'s loss is the mean over tokens of the clipped term", () => {
  const rows = [
    { pi: [1.5, 0.5], inputs: { advantage: [1, 1] } }, // −1.2, −0.5
    { pi: [1.5], inputs: { advantage: [-2] } }, // 3
  ];
  near(worked(reinforce_plus_plus).loss(rows).loss, (-1.2 - 0.5 + 3) / 3);
});

Deno.test("REINFORCE++ has its KL in the reward by default, and takes groups of one", () => {
  deepStrictEqual(defaults(reinforce_plus_plus, "kl_coef", "kl_in", "kl_estimator", "gamma"), {
    kl_coef: 0.01,
    kl_in: "reward",
    kl_estimator: "k1",
    gamma: 1,
  });
  strictEqual(reinforce_plus_plus.group_min, undefined);
  const choice = AlgorithmChoice.parse({ name: "reinforce_plus_plus" });
  deepStrictEqual(needsOf(choice, 1), ["old_logp", "ref_logp"]);
});

Deno.test("REINFORCE++ refuses a KL in the advantage, and k2 in the reward", () => {
  const places = (settings: Record<string, unknown>) =>
    refusals(reinforce_plus_plus, settings).map((text) => text.split(":")[0]);
  deepStrictEqual(places({ kl_in: "advantage" }), ["kl_in"]);
  deepStrictEqual(places({ kl_estimator: "k2" }), ["kl_estimator"]);
});
