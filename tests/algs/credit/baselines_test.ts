import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { groupCenter, groupZscore, leaveOneOut, roundMean } from "../../../algs/mod.ts";

const near = (a: readonly number[], b: readonly number[], tolerance: number) =>
  ok(a.length === b.length && a.every((x, i) => Math.abs(x - b[i]!) <= tolerance), `${a}, ${b}`);

Deno.test("groupZscore() uses each group's n - 1 deviation and keeps the order of samples", () => {
  const advantage = groupZscore([1, 10, 0, 30, 0, 0], [7, 8, 7, 8, 7, 7], 0);
  near(advantage, [1.5, -Math.SQRT1_2, -0.5, Math.SQRT1_2, -0.5, -0.5], 1e-15);
});

Deno.test("groupZscore() is 0 for a group of equal rewards, and for a group of one", () => {
  deepStrictEqual(groupZscore([1, 1, 1, 0.3], [0, 0, 0, 1], 1e-6), [0, 0, 0, 0]);
  deepStrictEqual(groupZscore([0.1, 0.1, 0.1], [0, 0, 0], 0), [0, 0, 0]);
});

Deno.test("credit ignores a constant added to a group; GRPO's also ignores a scale", () => {
  const reward = [0.3, 1, 0, 2, 5, 4];
  const group = [0, 0, 0, 1, 1, 1];
  const shifted = reward.map((r, i) => r + (group[i] ? 3 : -2));
  const scaled = reward.map((r) => 7 * r);
  for (
    const assign of [
      (r: number[]) => groupZscore(r, group, 1e-6),
      (r: number[]) => groupCenter(r, group),
      (r: number[]) => leaveOneOut(r, group),
    ]
  ) {
    near(assign(shifted), assign(reward), 1e-12);
  }
  near(groupZscore(scaled, group, 0), groupZscore(reward, group, 0), 1e-12);
  near(groupCenter(scaled, group), groupCenter(reward, group).map((a) => 7 * a), 1e-12);
});

Deno.test("leaveOneOut() is groupCenter() times G / (G - 1)", () => {
  const reward = [1, 0, 4, 2, 0, 7];
  const group = [0, 0, 1, 1, 1, 2];
  near(
    leaveOneOut(reward, group),
    groupCenter(reward, group).map((a, i) => a * [2, 2, 1.5, 1.5, 1.5, 1][i]!),
    1e-15,
  );
});

Deno.test("roundMean() is exact where all are equal", () => {
  strictEqual(roundMean([0.1, 0.1, 0.1]), 0.1);
  strictEqual(roundMean([1, 2, 6]), 3);
});
