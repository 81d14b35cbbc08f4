import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { ALGORITHMS } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { sapo } = ALGORITHMS;
const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

Deno.test("SAPO's advantage is GRPO's z-score", () => {
  const { credit } = worked(sapo, { std_epsilon: 0 });
  near(credit({ reward: [1, 0], length: [1, 1] }).advantage, [Math.SQRT1_2, -Math.SQRT1_2]);
});

Deno.test("SAPO gates the ratio by the temperature of the advantage's sign", () => {
  // Ratios 2 and 1 of one completion, 2 of the other: (4 ÷ τ) σ(τ (r − 1)) times the advantage.
  const { loss, metrics } = worked(sapo).loss([
    { pi: [0.5, 0.5], old: [0.25, 0.5], inputs: { advantage: 3 } },
    { pi: [0.5], old: [0.25], inputs: { advantage: -1 } },
  ]);
  const [positive, negative] = [sigmoid(1), sigmoid(1.05)];
  near(loss, (-3 * (4 * positive + 4 / 2) / 2 + 4 / 1.05 * negative) / 2);
  const weights = [positive * (1 - positive), 1 / 4, negative * (1 - negative)];
  near(metrics["policy/gate_weight"]!, 4 * (weights[0]! + weights[1]! + weights[2]!) / 3);
});

Deno.test("SAPO's gate has slope 1 at ratio 1 and less beside it, at any temperature", () => {
  for (const temperature of [0.5, 1, 4]) {
    const settings = { temperature_positive: temperature, temperature_negative: temperature };
    const { loss } = worked(sapo, settings);
    const slope = (ratio: number) => {
      const at = (r: number) => loss([{ pi: [r], inputs: { advantage: -1 } }]).loss;
      return (at(ratio + 1e-5) - at(ratio - 1e-5)) / 2e-5;
    };
    near(slope(1), 1, 1e-8);
    ok(slope(0.5) < 1 && slope(1.5) < 1 && slope(3) < slope(1.5));
  }
});

Deno.test("SAPO's defaults are the paper's, and its temperatures are positive", () => {
  deepStrictEqual(
    defaults(sapo, "temperature_positive", "temperature_negative", "aggregation", "kl_coef"),
    {
      temperature_positive: 1,
      temperature_negative: 1.05,
      aggregation: "sequence_mean",
      kl_coef: 0,
    },
  );
  strictEqual(sapo.group_min, 2);
  const [refused] = refusals(sapo, { temperature_negative: 0 });
  strictEqual(refused!.split(":")[0], "temperature_negative");
});
