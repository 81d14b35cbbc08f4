import { deepStrictEqual } from "node:assert/strict";
import { AlgorithmChoice, ALGORITHMS, needsOf } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { ppo } = ALGORITHMS;

/** Two tokens, reward 1, values 1/2 and 1/4: Δ is −1/4 and then 3/4. */
const ROUND = { reward: [1], length: [2], values: [[0.5, 0.25]] };

Deno.test("PPO's advantages are generalised advantage estimates; returns add the values", () => {
  const { advantage, returns } = worked(ppo, { whiten: false }).credit(ROUND);
  near(advantage, [-0.25 + 0.95 * 0.75, 0.75]);
  near(returns!, [0.9625, 1]);
});

Deno.test("PPO continues a completion that was cut with the value after it", () => {
  const settings = { whiten: false, lambda: 0, gamma: 0.5 };
  const cut = { ...ROUND, stop: ["length" as const], bootstrap: [0.5] };
  // Each advantage is its own Δ: 0.5 · 0.25 − 0.5, and 1 + 0.5 · 0.5 − 0.25.
  near(worked(ppo, settings).credit(cut).advantage, [-0.375, 1]);
  near(worked(ppo, settings).credit({ ...cut, stop: ["stop"] }).advantage, [-0.375, 0.75]);
});

Deno.test("PPO whitens advantages over the round's tokens, and leaves returns", () => {
  // 0.4625 and 0.75 are as far from their mean as they deviate.
  const { advantage, returns } = worked(ppo).credit(ROUND);
  near(advantage, [-1, 1], 1e-6);
  near(returns!, [0.9625, 1]);
});

Deno.test("PPO reports how much of the returns the values explain", () => {
  // Returns are 1 and 0.
  const round = { reward: [1, 0], length: [1, 1], values: [[1], [0.5]] };
  const { metrics } = worked(ppo, { lambda: 1 }).credit(round);
  // What is left, 0 and −1/2, has a quarter of the variance of 1 and 0.
  near(metrics!["value/explained_variance"]!, 0.75);
});

Deno.test("PPO's loss is the mean of clipped tokens", () => {
  const rows = [
    { pi: [1.5, 1], inputs: { advantage: [1, -1] } }, // −1.2, 1
    { pi: [0.5], inputs: { advantage: -1 } }, // 0.8
  ];
  near(worked(ppo).loss(rows).loss, (-1.2 + 1 + 0.8) / 3);
});

Deno.test("PPO's value loss is half the larger square, of a move of at most value_clip", () => {
  // 0.9 came from 0.5: it counts as 0.7. Squares 0.01 and 0.09.
  const rows = [{ inputs: { values: [0.9], old_values: [0.5], returns: [1] } }];
  near(worked(ppo).value_loss(rows).loss, 0.09 / 2);
  near(worked(ppo, { value_clip: null }).value_loss(rows).loss, 0.01 / 2);
});

Deno.test("PPO's defaults are a gamma of 1, the paper's lambda and whitened advantages", () => {
  deepStrictEqual(defaults(ppo, "gamma", "lambda", "whiten", "value_clip", "clip_high", "kl_in"), {
    gamma: 1,
    lambda: 0.95,
    whiten: true,
    value_clip: 0.2,
    clip_high: 0.2,
    kl_in: "loss",
  });
  deepStrictEqual(defaults(ppo, "aggregation"), { aggregation: "token_mean" });
});

Deno.test("PPO needs values and, with a KL in the reward, the log-probabilities", () => {
  deepStrictEqual(needsOf(AlgorithmChoice.parse({ name: "ppo" }), 1), ["values", "bootstrap"]);
  const held = { name: "ppo", kl_coef: 0.1, kl_in: "reward", kl_estimator: "k1" };
  deepStrictEqual(needsOf(AlgorithmChoice.parse(held), 1), [
    "old_logp",
    "ref_logp",
    "values",
    "bootstrap",
  ]);
});

Deno.test("PPO refuses a KL in the advantage, and a lambda above 1", () => {
  const places = refusals(ppo, { kl_in: "advantage", lambda: 2 }).map((text) => text.split(":")[0]);
  deepStrictEqual(places, ["lambda", "kl_in"]);
});
