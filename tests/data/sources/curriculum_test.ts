import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { CurriculumConfig } from "../../../data/mod.ts";
import { recentAfter, steeredWeights } from "../../../data/mod.ts";

const curriculum = (settings: object = {}) => CurriculumConfig.parse({ floor: 0.5, ...settings });

Deno.test("steeredWeights() favours sources with a signal, or near the target", () => {
  const signal = steeredWeights([1, 1, 2, 1], [0, 0.5, 1, null], curriculum());
  deepStrictEqual(signal, [0.5, 1, 1, 1]);
  const settings = { toward: "target", target: 0.75, width: 0.5 };
  const target = steeredWeights([1, 1, 1, 1], [0.75, 0.5, -3, 1.25], curriculum(settings));
  deepStrictEqual(target, [1, 0.75, 0.5, 0.5]);
  // A reward out of [0, 1] has no more signal than its nearest bound.
  deepStrictEqual(steeredWeights([1], [7], curriculum()), [0.5]);
});

Deno.test("recentAfter() moves the mean of a source that was scored, and leaves the others", () => {
  const after = recentAfter([null, 0.5, 0.25], [[1, 0], [1, 1], []], curriculum({ memory: 0.5 }));
  deepStrictEqual(after, [0.5, 0.75, 0.25]);
  strictEqual(recentAfter([0.5], [[1]], curriculum({ memory: 0 }))[0], 1);
});
