import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import {
  explainedVariance,
  gae,
  rewardToGo,
  sequenceReward,
  tokenReward,
  whiten,
} from "../../../algs/mod.ts";

const near = (a: readonly number[], b: readonly number[], tolerance: number) =>
  ok(
    a.length === b.length && a.every((x, i) => Math.abs(x - b[i]!) <= tolerance),
    `${a} is not near ${b}`,
  );

const number = fc.double({ min: -3, max: 3, noNaN: true });
const rows = fc.array(fc.array(number, { minLength: 1, maxLength: 5 }), {
  minLength: 1,
  maxLength: 5,
});

Deno.test("rewardToGo() discounts what comes after a token", () => {
  deepStrictEqual(rewardToGo([[1, 2, 4], [], [3]], 0.5), [[3, 4, 4], [], [3]]);
});

Deno.test("gae() with lambda 1 and values 0 is reward-to-go", () => {
  fc.assert(fc.property(rows, fc.double({ min: 0, max: 1, noNaN: true }), (rewards, gamma) => {
    const zeros = rewards.map((row) => row.map(() => 0));
    const round = {
      values: zeros,
      bootstrap: rewards.map(() => 0),
      stop: rewards.map(() => "stop" as const),
    };
    const { advantage, returns } = gae(rewards, round, { gamma, lambda: 1 });
    rewardToGo(rewards, gamma).forEach((row, i) => near(advantage[i]!, row, 1e-12));
    deepStrictEqual(returns, advantage);
  }));
});

Deno.test("gae() is the sum of discounted temporal differences, by the definition", () => {
  fc.assert(fc.property(rows, number, number, (rewards, bootstrap, seed) => {
    const [gamma, lambda] = [0.9, 0.7];
    const values = rewards.map((row) => row.map((r, t) => r * seed + t));
    const round = {
      values,
      bootstrap: rewards.map(() => bootstrap),
      stop: rewards.map(() => "length" as const),
    };
    const { advantage, returns } = gae(rewards, round, { gamma, lambda });
    rewards.forEach((row, i) => {
      const after = [...values[i]!.slice(1), bootstrap];
      const difference = row.map((r, t) => r + gamma * after[t]! - values[i]![t]!);
      const direct = row.map((_, t) =>
        difference.slice(t).reduce((sum, d, k) => sum + (gamma * lambda) ** k * d, 0)
      );
      near(advantage[i]!, direct, 1e-12);
      near(returns[i]!, direct.map((a, t) => a + values[i]![t]!), 1e-12);
    });
  }));
});

Deno.test("gae() bootstraps a completion that was cut, not one that stopped", () => {
  const rewards = [[0, 1], [0, 1]];
  const round = {
    values: [[0, 0], [0, 0]],
    bootstrap: [5, 5],
    stop: ["stop" as const, "length" as const],
  };
  deepStrictEqual(gae(rewards, round, { gamma: 1, lambda: 1 }).advantage, [[1, 1], [6, 6]]);
});

Deno.test("whiten() is over all tokens: a completion's advantage counts for each of them", () => {
  const [row] = whiten([[1, 2, 3, 6]], [4]);
  near(row!, [-2, -1, 0, 3].map((x) => x / Math.sqrt(14 / 4)), 1e-7);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(number, fc.integer({ min: 0, max: 4 })), { maxLength: 6 }),
      (pairs) => {
        const [values, length] = [
          pairs.map(([value]) => value),
          pairs.map(([, tokens]) => tokens),
        ];
        const spread = whiten(
          values.map((value, i) => new Array<number>(length[i]!).fill(value)),
          length,
        );
        const whole = whiten(values, length);
        spread.forEach((tokens, i) => near(tokens, tokens.map(() => whole[i]!), 1e-9));
      },
    ),
  );
});

Deno.test("whiten() is all zeros where all are equal, and finite without a token", () => {
  deepStrictEqual(whiten([[0.1, 0.1], [0.1]], [2, 1]), [[0, 0], [0]]);
  deepStrictEqual(whiten([[], []], [0, 0]), [[], []]);
  deepStrictEqual(whiten([3, 4], [0, 0]), [0, 0]);
});

Deno.test("tokenReward() and sequenceReward() add up the same", () => {
  const round = {
    reward: [1, 2],
    group: [0, 0],
    stop: ["stop" as const, "stop" as const],
    length: [2, 1],
  };
  const kl = [[-0.5, -0.25], [0]];
  deepStrictEqual(tokenReward(round, kl), [[-0.5, 0.75], [2]]);
  deepStrictEqual(sequenceReward(round, kl), [0.25, 2]);
  const dense = { ...round, token_reward: [[8, 0], [16]] };
  deepStrictEqual(tokenReward(dense, kl), [[7.5, 0.75], [18]]);
  deepStrictEqual(sequenceReward(dense, kl), [8.25, 18]);
});

Deno.test("explainedVariance() is 1 for perfect values and 0 for constant ones", () => {
  strictEqual(explainedVariance([[1, 2], [3]], [[1, 2], [3]]), 1);
  strictEqual(explainedVariance([[1, 2], [3]], [[5, 5], [5]]), 0);
  strictEqual(explainedVariance([[1, 1]], [[0, 3]]), 0);
});
