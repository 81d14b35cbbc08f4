import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { passesFilter } from "../../../flows/stages/passes_filter.ts";

const group = (parts: Record<string, (number | null)[]>) => ({
  parts,
  group: { draw: 7, slab: { sha256: "0".repeat(64), bytes: 1 }, index: 0, samples: [0, 1] },
});
const passes = (values: (number | null)[], range: { above?: number; below?: number } = {}) =>
  passesFilter(group({ judge: [1, 1], "judge/filter_score": values }), {
    by: "judge/filter_score",
    ...range,
  });

Deno.test("without a range a group passes if its values differ", () => {
  deepStrictEqual([passes([0, 1]), passes([1, 1]), passes([null, 1])], [true, false, false]);
});

Deno.test("with a range a group passes if its mean is inside, its ends excluded", () => {
  const range = { above: 0, below: 1 };
  deepStrictEqual([passes([0, 1], range), passes([0.5, 0.5], range)], [true, true]);
  deepStrictEqual([passes([0, 0], range), passes([1, 1], range)], [false, false]);
  deepStrictEqual([passes([2, 2], { above: 1 }), passes([2, 2], { below: 2 })], [true, false]);
});

Deno.test("a number that a reward does not return is an error", () => {
  throws(
    () => passesFilter(group({ judge: [1, 0] }), { by: "judge/filter" }),
    /because judge did not return it for every sample of draw 7: that has judge\. Fix: /,
  );
  strictEqual(passesFilter(group({ judge: [null, null] }), { by: "judge/filter" }), false);
  strictEqual(passesFilter(group({}), { by: "judge" }), false);
});
