import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { deviationOf, NO_SCORES, normalisedScore, withScores } from "../../data/mod.ts";

const WHOLE = { memory: 1 };

Deno.test("withScores() has the mean and the squared distances of all scores", () => {
  const once = withScores(NO_SCORES, [1, 3], WHOLE);
  deepStrictEqual(once, { count: 2, mean: 2, m2: 2 });
  deepStrictEqual(withScores(once, [5, 7], WHOLE), { count: 4, mean: 4, m2: 20 });
  deepStrictEqual(withScores(once, [], WHOLE), once);
  strictEqual(deviationOf({ count: 4, mean: 4, m2: 20 }), Math.sqrt(5));
});

Deno.test("withScores() in parts is withScores() of all, up to rounding", () => {
  const scores = fc.array(fc.double({ min: -1e3, max: 1e3, noNaN: true }), { maxLength: 20 });
  fc.assert(fc.property(scores, scores, (a, b) => {
    const parts = withScores(withScores(NO_SCORES, a, WHOLE), b, WHOLE);
    const all = withScores(NO_SCORES, [...a, ...b], WHOLE);
    strictEqual(parts.count, all.count);
    ok(Math.abs(parts.mean - all.mean) < 1e-9);
    ok(Math.abs(parts.m2 - all.m2) < 1e-4);
  }));
});

Deno.test("a memory below 1 lets earlier scores count less", () => {
  const before = { count: 4, mean: 0, m2: 4 };
  deepStrictEqual(withScores(before, [3, 3], { memory: 0.5 }), { count: 4, mean: 1.5, m2: 11 });
});

Deno.test("normalisedScore() has mean 0 and deviation 1; equal scores are all 0", () => {
  const state = withScores(NO_SCORES, [1, 3], WHOLE);
  const near = (value: number, wanted: number) => ok(Math.abs(value - wanted) < 1e-7, `${value}`);
  near(normalisedScore(3, state, { center: true }), 1);
  near(normalisedScore(3, state, { center: false }), 3);
  const equal = withScores(NO_SCORES, new Array<number>(7).fill(0.1), WHOLE);
  near(normalisedScore(0.1, equal, { center: true }), 0);
});
