import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { splitEvenly, updatesOf } from "../../../flows/stages/optimizer_steps.ts";

const counts = fc.record({ n: fc.nat(60), parts: fc.integer({ min: 1, max: 20 }) });

/** Streams of numbers that only their names decide. */
const random = (name = "") => {
  let state = name.length;
  return () => (state = (state * 16807 + 11) % 2147483647) / 2147483647;
};

Deno.test("splitEvenly() cuts 0..n-1 into runs whose lengths differ by at most one", () => {
  fc.assert(fc.property(counts, ({ n, parts }) => {
    const runs = splitEvenly(n, parts);
    deepStrictEqual(runs.flat(), Array.from({ length: n }, (_, i) => i));
    strictEqual(runs.length, Math.min(n, parts));
    const lengths = runs.map((run) => run.length);
    ok(n === 0 || Math.max(...lengths) - Math.min(...lengths) <= 1);
  }));
});

Deno.test("updatesOf() keeps the order of the batch in its first epoch", () => {
  deepStrictEqual(updatesOf(5, { updates: 2, epochs: 1 }, { random }), [[0, 1], [2, 3, 4]]);
});

Deno.test("updatesOf() holds every place once in each epoch", () => {
  fc.assert(fc.property(counts, fc.integer({ min: 1, max: 3 }), ({ n, parts }, epochs) => {
    const steps = updatesOf(n, { updates: parts, epochs }, { random });
    const per_epoch = Math.min(n, parts);
    strictEqual(steps.length, per_epoch * epochs);
    for (let epoch = 0; epoch < epochs; epoch++) {
      const places = steps.slice(epoch * per_epoch, (epoch + 1) * per_epoch).flat();
      deepStrictEqual(places.toSorted((a, b) => a - b), Array.from({ length: n }, (_, i) => i));
    }
  }));
});

Deno.test("updatesOf() shuffles each later epoch by a stream of its own", () => {
  const names: (string | undefined)[] = [];
  const steps = updatesOf(8, { updates: 1, epochs: 3 }, {
    random: (name) => (names.push(name), random(name === "epoch/2" ? "a" : "abc")),
  });
  deepStrictEqual(names, ["epoch/2", "epoch/3"]);
  strictEqual(new Set(steps.map((step) => step.join())).size, 3);
});
