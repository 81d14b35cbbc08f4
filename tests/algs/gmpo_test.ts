import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ALGORITHMS } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { gmpo } = ALGORITHMS;

Deno.test("GMPO's advantage is GRPO's z-score", () => {
  const { credit } = worked(gmpo, { std_epsilon: 0 });
  near(credit({ reward: [1, 0], length: [1, 1] }).advantage, [Math.SQRT1_2, -Math.SQRT1_2]);
});

Deno.test("GMPO's loss is the geometric mean of a completion's ratios", () => {
  // Ratios 1.2 and 1 / 1.2 of one completion, 1.1 of the other.
  const { loss, metrics } = worked(gmpo).loss([
    { pi: [0.6, 0.5], old: [0.5, 0.6], inputs: { advantage: 3 } },
    { pi: [0.55], old: [0.5], inputs: { advantage: -1 } },
  ]);
  near(loss, (-3 * 1 + 1.1) / 2);
  strictEqual(metrics["policy/clip_fraction"], 0);
});

Deno.test("GMPO clips each token's log-ratio, on the side that its advantage's sign says", () => {
  const settings = { clip_low: Math.log(2), clip_high: Math.log(3) };
  const { loss } = worked(gmpo, settings);
  const of = (ratios: number[], advantage: number) =>
    loss([{ pi: ratios.map((r) => r / 8), old: ratios.map(() => 1 / 8), inputs: { advantage } }]);
  near(of([4, 1], 1).loss, -Math.sqrt(3)); // 4 counts as 3
  near(of([4, 1], -1).loss, 2); // and here as itself
  near(of([1 / 4, 1], 1).loss, -1 / 2);
  near(of([1 / 4, 1], -1).loss, Math.sqrt(1 / 2));
  strictEqual(of([4, 1], 1).metrics["policy/clip_fraction"], 0.5);
  strictEqual(of([1 / 4, 1 / 4], 1).metrics["policy/clip_fraction"], 1);
});

Deno.test("GMPO's defaults are the paper's, and its bounds are not negative", () => {
  deepStrictEqual(defaults(gmpo, "clip_low", "clip_high", "aggregation", "kl_coef"), {
    clip_low: 0.4,
    clip_high: 0.4,
    aggregation: "sequence_mean",
    kl_coef: 0,
  });
  strictEqual(gmpo.group_min, 2);
  const [refused] = refusals(gmpo, { clip_low: -0.1 });
  strictEqual(refused!.split(":")[0], "clip_low");
});
