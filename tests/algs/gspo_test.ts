import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { AlgorithmChoice, ALGORITHMS, ratioBounds } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { gspo } = ALGORITHMS;
const wide = { clip_low: 0.2, clip_high: 0.2 };

Deno.test("GSPO's advantage is GRPO's z-score", () => {
  const { advantage } = worked(gspo, { std_epsilon: 0 }).credit({ reward: [2, 0], length: [1, 1] });
  near(advantage, [Math.SQRT1_2, -Math.SQRT1_2]);
});

Deno.test("GSPO's ratio is the geometric mean of a completion's, which is clipped whole", () => {
  const rows = [
    { pi: [2, 0.5], inputs: { advantage: -1 } }, // s = 1: 1
    { pi: [4, 1], inputs: { advantage: 1 } }, // s = 2, clipped: −1.2
  ];
  for (const ratio_gradient of ["token", "sequence"]) {
    const { loss, metrics } = worked(gspo, { ...wide, ratio_gradient }).loss(rows);
    near(loss, (1 - 1.2) / 2);
    near(metrics["policy/clip_fraction"]!, 2 / 4);
  }
});

Deno.test("GSPO's default clip is the paper's few parts in ten thousand", () => {
  deepStrictEqual(defaults(gspo, "clip_low", "clip_high", "aggregation", "ratio_gradient"), {
    clip_low: 3e-4,
    clip_high: 4e-4,
    aggregation: "sequence_mean",
    ratio_gradient: "token",
  });
  const loss = (ratio: number, advantage: number) =>
    worked(gspo).loss([{ pi: [ratio, ratio], inputs: { advantage } }]).loss;
  near([loss(1.0002, 1), loss(1.0006, 1)], [-1.0002, -1.0004]);
  near([loss(0.9998, -1), loss(0.9994, -1)], [0.9998, 0.9997]);
});

Deno.test("GSPO's bounds are of a completion's mean, and it needs groups of two", () => {
  const { ratio } = ratioBounds(AlgorithmChoice.parse({ name: "gspo" }));
  deepStrictEqual([ratio, gspo.group_min], ["sequence_mean", 2]);
});

Deno.test("GSPO refuses a ratio of neither tokens nor completions", () => {
  const [refused] = refusals(gspo, { ratio_gradient: "group" });
  strictEqual(refused!.split(":")[0], "ratio_gradient");
});
