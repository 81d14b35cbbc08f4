import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { axisOf, niceStep, share } from "../../../runs/plots/axis.ts";

const texts = (least: number, most: number, step_min = 0) =>
  axisOf({ least, most }, { steps: 5, step_min }).ticks.map(({ text }) => text);

Deno.test("niceStep() is 1, 2 or 5 times a power of ten, and 1 for nothing", () => {
  deepStrictEqual([0, 0.7, 3, 5, 7, 60, 5e-324].map(niceStep), [1, 1, 5, 5, 10, 100, 1]);
});

Deno.test("axisOf() encloses the values with round ticks, wherever they begin", () => {
  deepStrictEqual(texts(0, 1), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
  deepStrictEqual(texts(-0.31, 0.42), ["-0.4", "-0.2", "0.0", "0.2", "0.4", "0.6"]);
  deepStrictEqual(texts(1001, 1009), ["1000", "1002", "1004", "1006", "1008", "1010"]);
  deepStrictEqual(texts(-4, -3), ["-4.0", "-3.8", "-3.6", "-3.4", "-3.2", "-3.0"]);
});

Deno.test("axisOf() has no tick for what is next to one, and none between rounds", () => {
  deepStrictEqual(texts(-1e-9, 4), ["0", "1", "2", "3", "4"]);
  deepStrictEqual(texts(1, 3, 1), ["1", "2", "3"]);
});

Deno.test("axisOf() has one value in its middle, also zero", () => {
  for (const value of [0, 3, -0.5, 1e20]) {
    const axis = axisOf({ least: value, most: value }, { steps: 4 });
    ok(Math.abs(share(value, axis) - 0.5) < 0.1, `${value}: ${JSON.stringify(axis)}`);
  }
  strictEqual(texts(3, 3, 1).join(" "), "2 3 4");
});

Deno.test("axisOf() writes what is very large or small with an exponent, and has few ticks of it", () => {
  deepStrictEqual(texts(0, 5e6), ["0", "1e+6", "2e+6", "3e+6", "4e+6", "5e+6"]);
  deepStrictEqual(texts(0, 3e-7), ["0", "1e-7", "2e-7", "3e-7"]);
  for (
    const [least, most] of [[-9e299, 9e299], [1e300, 1e300 * (1 + 1e-15)], [0, 5e-324], [
      3e-310,
      3e-310,
    ], [0, 9e-310]]
  ) {
    const { from, to, ticks } = axisOf({ least: least!, most: most! }, { steps: 5 });
    ok(from < to && ticks.length <= 8, `${least} to ${most}: ${ticks.length}`);
  }
});
