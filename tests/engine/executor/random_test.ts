import { deepStrictEqual, notDeepStrictEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import { randomStream } from "../../../engine/executor/random.ts";

const first = (count: number, ...names: (string | number)[]): number[] => {
  const stream = randomStream(...names);
  return Array.from({ length: count }, stream);
};

Deno.test("randomStream() of given names is these numbers, in every version", () => {
  deepStrictEqual(first(3, 7, "round/1/draw", ""), [
    0.5276724922005087,
    0.6729736840352416,
    0.5429909969680011,
  ]);
});

Deno.test("randomStream() depends on its names alone, and tells them apart", () => {
  deepStrictEqual(first(4, "a", "b"), first(4, "a", "b"));
  const names: (string | number)[][] = [["a", "b"], ["ab"], ["b", "a"], ["a", "b", ""], ["1"], [1]];
  for (const [i, one] of names.entries()) {
    for (const other of names.slice(i + 1)) {
      notDeepStrictEqual(first(4, ...one), first(4, ...other));
    }
  }
});

Deno.test("randomStream() stays in [0, 1) and spreads over it", () => {
  fc.assert(
    fc.property(fc.string(), (name) => {
      const drawn = first(1000, name);
      ok(drawn.every((number) => number >= 0 && number < 1));
      const mean = drawn.reduce((sum, number) => sum + number, 0) / drawn.length;
      // 6 standard deviations of the mean of 1000 uniform numbers: 0.0091 each.
      ok(Math.abs(mean - 0.5) < 0.055, `the mean is ${mean}`);
    }),
    { seed: 1, numRuns: 50 },
  );
});
