import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { AlgorithmChoice, ALGORITHMS, headOf } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { reward_model } = ALGORITHMS;

/** A pair whose chosen completion scores ln 3 more. */
const pair = (margin: number) => [
  { inputs: { score: 1 + Math.log(3), margin } },
  { inputs: { score: 1, margin: 0 } },
];

Deno.test("the reward model's loss is -log of the chance that the chosen one wins", () => {
  const { loss, metrics } = worked(reward_model).loss(pair(0));
  near(loss, Math.log(4 / 3)); // σ(ln 3) = 3/4
  near(metrics["reward/margin"]!, Math.log(3));
  strictEqual(metrics["reward/accuracy"], 1);
});

Deno.test("the reward model asks a score beyond the row's margin", () => {
  near(worked(reward_model).loss(pair(Math.log(3))).loss, Math.LN2);
});

Deno.test("the reward model's loss is OpenRLHF's LogExpLoss, log(1 + exp(rejected - chosen))", () => {
  for (const [chosen, rejected] of [[1, 0], [0, 0], [-2, 3], [5, -7]] as const) {
    const scored = [chosen, rejected].map((score) => ({ inputs: { score, margin: 0 } }));
    near(worked(reward_model).loss(scored).loss, Math.log1p(Math.exp(rejected - chosen)));
  }
});

Deno.test("the reward model centres scores by the square of a pair's sum", () => {
  const sum = 2 + Math.log(3);
  const { loss } = worked(reward_model, { center_coef: 0.01 }).loss(pair(0));
  near(loss, Math.log(4 / 3) + 0.01 * sum ** 2);
});

Deno.test("the reward model's accuracy counts a tie as wrong", () => {
  const tie = [{ inputs: { score: 2, margin: 0 } }, { inputs: { score: 2, margin: 0 } }];
  strictEqual(worked(reward_model).loss([...pair(0), ...tie]).metrics["reward/accuracy"], 0.5);
});

Deno.test("the reward model ends in a score, without centring unless it is asked for", () => {
  deepStrictEqual(defaults(reward_model, "center_coef"), { center_coef: 0 });
  strictEqual(headOf(AlgorithmChoice.parse({ name: "reward_model" })), "score");
  deepStrictEqual(refusals(reward_model, { center_coef: -1 }).length, 1);
});
