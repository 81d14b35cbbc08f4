import fc from "fast-check";
import { deepStrictEqual, notDeepStrictEqual, ok, throws } from "node:assert/strict";
import { pickSources, weightAt } from "../../../data/mod.ts";

Deno.test("weightAt() is linear between points, and constant outside them", () => {
  deepStrictEqual([1, 50, 500].map((round) => weightAt(0.3, round)), [0.3, 0.3, 0.3]);
  const weight: [number, number][] = [[10, 0.8], [20, 0.2], [21, 1]];
  const at = [1, 10, 15, 20, 21, 99].map((round) => weightAt(weight, round));
  deepStrictEqual(at, [0.8, 0.8, 0.5, 0.2, 1, 1]);
});

/** 99.9 % of chi-square with 3 degrees of freedom. */
const CHI_SQUARE_MAX = 16.27;

Deno.test("pickSources() draws sources in proportion to their weights (chi-square)", () => {
  const weights = [5, 0, 2, 1, 2];
  const count = 20_000;
  for (const seed of [0, 1, 2, 2 ** 40]) {
    const picked = pickSources(weights, { seed, from: 0, count });
    const expected = weights.map((weight) => (count * weight) / 10);
    const seen = weights.map((_, source) => picked.filter((one) => one === source).length);
    deepStrictEqual(seen[1], 0);
    const chi_square = seen.reduce(
      (sum, n, i) => sum + (expected[i] === 0 ? 0 : (n - expected[i]!) ** 2 / expected[i]!),
      0,
    );
    ok(chi_square < CHI_SQUARE_MAX, `seed ${seed}: ${seen} has chi-square ${chi_square}`);
  }
});

Deno.test("pickSources() picks the same for a draw wherever its round begins", () => {
  const weights = fc.array(fc.double({ min: 0, max: 9, noNaN: true }), { minLength: 1 });
  fc.assert(fc.property(weights, fc.nat(), fc.nat(20), (some, seed, cut) => {
    fc.pre(some.some((weight) => weight > 0));
    const whole = pickSources(some, { seed, from: 0, count: 20 });
    const [a, b] = [{ seed, from: 0, count: cut }, { seed, from: cut, count: 20 - cut }];
    deepStrictEqual([...pickSources(some, a), ...pickSources(some, b)], whole);
    ok(whole.every((source) => some[source]! > 0));
  }));
  const of = (seed: number) => pickSources([1, 1], { seed, from: 0, count: 64 });
  notDeepStrictEqual(of(1), of(2));
  throws(() => pickSources([0, 0], { seed: 0, from: 0, count: 1 }), RangeError);
});
