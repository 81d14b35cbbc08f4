import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import {
  AlgorithmChoice,
  creditOf,
  type CreditRound,
  explainedVariance,
  firstCoef,
  gae,
  groupZscore,
  leaveOneOut,
  needsOf,
  overlongPenalty,
  refillOf,
  rewardToGo,
  sequenceReward,
  tokenReward,
  whiten,
} from "../../algs/mod.ts";

const near = (a: readonly number[], b: readonly number[], tolerance: number) =>
  ok(a.length === b.length && a.every((x, i) => Math.abs(x - b[i]!) <= tolerance), `${a} is not near ${b}`);

const number = fc.double({ min: -3, max: 3, noNaN: true });
const rows = fc.array(fc.array(number, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 5 });

Deno.test("rewardToGo() discounts what comes after a token", () => {
  deepStrictEqual(rewardToGo([[1, 2, 4], [], [3]], 0.5), [[3, 4, 4], [], [3]]);
});

Deno.test("gae() with lambda 1 and values 0 is reward-to-go", () => {
  fc.assert(fc.property(rows, fc.double({ min: 0, max: 1, noNaN: true }), (rewards, gamma) => {
    const zeros = rewards.map((row) => row.map(() => 0));
    const round = { values: zeros, bootstrap: rewards.map(() => 0), stop: rewards.map(() => "stop" as const) };
    const { advantage, returns } = gae(rewards, round, { gamma, lambda: 1 });
    rewardToGo(rewards, gamma).forEach((row, i) => near(advantage[i]!, row, 1e-12));
    deepStrictEqual(returns, advantage);
  }));
});

Deno.test("gae() is the sum of discounted temporal differences, by the definition", () => {
  fc.assert(fc.property(rows, number, number, (rewards, bootstrap, seed) => {
    const [gamma, lambda] = [0.9, 0.7];
    const values = rewards.map((row) => row.map((r, t) => r * seed + t));
    const round = { values, bootstrap: rewards.map(() => bootstrap), stop: rewards.map(() => "length" as const) };
    const { advantage, returns } = gae(rewards, round, { gamma, lambda });
    rewards.forEach((row, i) => {
      const after = [...values[i]!.slice(1), bootstrap];
      const difference = row.map((r, t) => r + gamma * after[t]! - values[i]![t]!);
      const direct = row.map((_, t) => difference.slice(t).reduce((sum, d, k) => sum + (gamma * lambda) ** k * d, 0));
      near(advantage[i]!, direct, 1e-12);
      near(returns[i]!, direct.map((a, t) => a + values[i]![t]!), 1e-12);
    });
  }));
});

Deno.test("gae() bootstraps a completion that was cut, not one that stopped", () => {
  const rewards = [[0, 1], [0, 1]];
  const round = { values: [[0, 0], [0, 0]], bootstrap: [5, 5], stop: ["stop" as const, "length" as const] };
  deepStrictEqual(gae(rewards, round, { gamma: 1, lambda: 1 }).advantage, [[1, 1], [6, 6]]);
});

Deno.test("whiten() takes mean and deviation over all tokens, and counts a completion's one advantage for each of its tokens", () => {
  const [row] = whiten([[1, 2, 3, 6]], [4]);
  near(row!, [-2, -1, 0, 3].map((x) => x / Math.sqrt(14 / 4)), 1e-7);
  fc.assert(fc.property(fc.array(fc.tuple(number, fc.integer({ min: 0, max: 4 })), { maxLength: 6 }), (pairs) => {
    const [values, length] = [pairs.map(([value]) => value), pairs.map(([, tokens]) => tokens)];
    const spread = whiten(values.map((value, i) => new Array<number>(length[i]!).fill(value)), length);
    const whole = whiten(values, length);
    spread.forEach((tokens, i) => near(tokens, tokens.map(() => whole[i]!), 1e-9));
  }));
});

Deno.test("whiten() is all zeros where all are equal, and finite without a token", () => {
  deepStrictEqual(whiten([[0.1, 0.1], [0.1]], [2, 1]), [[0, 0], [0]]);
  deepStrictEqual(whiten([[], []], [0, 0]), [[], []]);
  deepStrictEqual(whiten([3, 4], [0, 0]), [0, 0]);
});

Deno.test("tokenReward() and sequenceReward() add up the same", () => {
  const round = { reward: [1, 2], group: [0, 0], stop: ["stop" as const, "stop" as const], length: [2, 1] };
  const kl = [[-0.5, -0.25], [0]];
  deepStrictEqual(tokenReward(round, kl), [[-0.5, 0.75], [2]]);
  deepStrictEqual(sequenceReward(round, kl), [0.25, 2]);
  const dense = { ...round, token_reward: [[8, 0], [16]] };
  deepStrictEqual(tokenReward(dense, kl), [[7.5, 0.75], [18]]);
  deepStrictEqual(sequenceReward(dense, kl), [8.25, 18]);
});

Deno.test("overlongPenalty() rises over the buffer and is whole at the end", () => {
  const c = { overlong_length_max: 10, overlong_buffer: 4, overlong_factor: 2 };
  deepStrictEqual(overlongPenalty([1, 6, 7, 8, 10, 12], c), [0, 0, -0.5, -1, -2, -2]);
  deepStrictEqual(overlongPenalty([1, 100], { ...c, overlong_buffer: 0 }), [0, 0]);
});

Deno.test("explainedVariance() is 1 for perfect values and 0 for constant ones", () => {
  strictEqual(explainedVariance([[1, 2], [3]], [[1, 2], [3]]), 1);
  strictEqual(explainedVariance([[1, 2], [3]], [[5, 5], [5]]), 0);
  strictEqual(explainedVariance([[1, 1]], [[0, 3]]), 0);
});

const round: CreditRound = {
  reward: [1, 0, 1, 1],
  group: [0, 0, 1, 1],
  stop: ["stop", "stop", "length", "stop"],
  length: [2, 1, 3, 2],
};
const choice = (settings: Record<string, unknown> & { name: string }) => AlgorithmChoice.parse(settings);
const scored = {
  old_logp: [[-1, -1], [-1], [-1, -1, -1], [-1, -1]],
  ref_logp: [[-1, -2], [-1], [-1, -1, -1], [-1, -1]],
};

Deno.test("creditOf() gives REINFORCE the round's mean as a baseline, and none if none is asked for", () => {
  const all = creditOf(choice({ name: "reinforce" }), round).advantage;
  deepStrictEqual(all, [[0.25, 0.25], [-0.75], [0.25, 0.25, 0.25], [0.25, 0.25]]);
  const none = creditOf(choice({ name: "reinforce", baseline: "none", gamma: 0.5 }), round).advantage;
  deepStrictEqual(none, [[0.5, 1], [0], [0.25, 0.5, 1], [0.5, 1]]);
});

Deno.test("creditOf() gives REINFORCE++ whitened rewards to go, less the KL", () => {
  const { advantage, metrics } = creditOf(choice({ name: "reinforce_plus_plus", kl_coef: 0.5 }), {
    ...round,
    ...scored,
  });
  const earned = [[0.5, 0.5], [0], [1, 1, 1], [1, 1]]; // a KL of 1 on one token
  deepStrictEqual(advantage, whiten(earned, round.length));
  strictEqual(metrics!["policy/kl_ref_completion"], 0.25);
});

Deno.test("creditOf() gives the baseline form one advantage per completion, whitened over tokens", () => {
  const { advantage } = creditOf(choice({ name: "reinforce_plus_plus_baseline" }), round);
  deepStrictEqual(advantage, whiten([0.5, -0.5, 0, 0], round.length));
});

Deno.test("creditOf() takes RLOO's KL from the reward before the baseline", () => {
  const { advantage } = creditOf(choice({ name: "rloo", kl_coef: 0.5 }), { ...round, ...scored });
  deepStrictEqual(advantage, leaveOneOut([0.5, 0, 1, 1], round.group));
});

Deno.test("creditOf() gives PPO whitened advantages and raw returns", () => {
  const values = round.length.map((tokens) => new Array<number>(tokens).fill(0.5));
  const assigned = creditOf(choice({ name: "ppo", lambda: 1 }), { ...round, values, bootstrap: [9, 9, 0.5, 9] });
  deepStrictEqual(assigned.returns, [[1, 1], [0], [1.5, 1.5, 1.5], [1, 1]]);
  deepStrictEqual(assigned.advantage, whiten([[0.5, 0.5], [-0.5], [1, 1, 1], [0.5, 0.5]], round.length));
  const raw = creditOf(choice({ name: "ppo", lambda: 1, whiten: false }), {
    ...round,
    values,
    bootstrap: [9, 9, 0.5, 9],
  });
  deepStrictEqual(raw.advantage, [[0.5, 0.5], [-0.5], [1, 1, 1], [0.5, 0.5]]);
});

Deno.test("creditOf() takes DAPO's overlong penalty from the reward of the group", () => {
  const settings = { name: "dapo", overlong_buffer: 2, overlong_length_max: 3, std_epsilon: 0 };
  const { advantage } = creditOf(choice(settings), round);
  deepStrictEqual(advantage, groupZscore([0.5, 0, 0, 0.5], round.group, 0));
});

Deno.test("needsOf() of PPO: values and what follows the last token; log-probabilities where the KL is in the reward", () => {
  deepStrictEqual(needsOf(choice({ name: "ppo" }), 1), ["values", "bootstrap"]);
  deepStrictEqual(needsOf(choice({ name: "ppo", kl_coef: 0.1, kl_in: "reward", kl_estimator: "k1" }), 1), [
    "old_logp",
    "ref_logp",
    "values",
    "bootstrap",
  ]);
  deepStrictEqual(needsOf(choice({ name: "reinforce_plus_plus" }), 1), ["old_logp", "ref_logp"]);
});

Deno.test("firstCoef() has the steered weight of the KL, and nothing for a weight that stays", () => {
  deepStrictEqual(firstCoef(choice({ name: "grpo", kl_coef: 0.1 })), {});
  deepStrictEqual(firstCoef(choice({ name: "grpo", kl_coef: 0.1, kl_target: 6 })), { kl: 0.1 });
  const reward = { kl_coef: 0.1, kl_target: 6, kl_in: "reward", kl_estimator: "k1" };
  deepStrictEqual(firstCoef(choice({ name: "ppo", ...reward })), { kl: 0.1 });
});

Deno.test("refillOf() is DAPO's, until it is set to 0", () => {
  deepStrictEqual(refillOf(choice({ name: "dapo" })), { batches_max: 10, surplus: "rescore" });
  deepStrictEqual(refillOf({ ...choice({ name: "dapo" }), surplus: "discard" } as AlgorithmChoice), {
    ...{ batches_max: 10, surplus: "discard" },
  });
  strictEqual(refillOf(choice({ name: "dapo", refill_batches_max: 0 })), null);
  strictEqual(refillOf(choice({ name: "grpo" })), null);
});
