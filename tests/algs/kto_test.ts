import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { AlgorithmChoice, ALGORITHMS, unpairedOf } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { kto } = ALGORITHMS;

const labelled = (label: number, pi: number[], ref: number[]) => ({ pi, ref, inputs: { label } });
/** Log-ratios ln 4 (2 · 2) and -ln 2, behind prompts whose mismatched completions have ln 2 and 0. */
const ROWS = [
  labelled(1, [0.5, 0.5], [0.25, 0.25]),
  labelled(0, [0.5], [0.25]),
  labelled(-1, [0.25], [0.5]),
  labelled(0, [0.5], [0.5]),
];

Deno.test("KTO's loss is one minus the value of each completion beside the KL of mismatched ones", () => {
  // z_0 = (ln 2 + 0) / 2. Desirable: ln 4 - ln √2 = ln 2√2, and 1 - σ = 1 / (1 + 2√2).
  // Undesirable: ln √2 + ln 2 = ln 2√2, the same.
  const { loss, metrics } = worked(kto, { beta: 1 }).loss(ROWS);
  near(loss, 1 / (1 + 2 * Math.SQRT2));
  near(metrics["policy/kl_ref"]!, Math.LN2 / 2);
  near([metrics["reward/chosen"]!, metrics["reward/rejected"]!], [2 * Math.LN2, -Math.LN2]);
  near(metrics["reward/margin"]!, 3 * Math.LN2);
  near([metrics["policy/chosen_logp"]!, metrics["policy/rejected_logp"]!], [
    -2 * Math.LN2,
    -2 * Math.LN2,
  ]);
  strictEqual(metrics["reward/accuracy"], 1);
});

Deno.test("KTO weighs desirable and undesirable completions apart, and divides by all of them", () => {
  const weights = { desirable_weight: 3, undesirable_weight: 0.5 };
  near(worked(kto, { beta: 1, ...weights }).loss(ROWS).loss, 3.5 / 2 / (1 + 2 * Math.SQRT2));
});

Deno.test("KTO's reference point is never below 0", () => {
  const below = ROWS.map((row) => row.inputs.label === 0 ? labelled(0, [0.25], [0.5]) : row);
  const { loss, metrics } = worked(kto, { beta: 1 }).loss(below);
  strictEqual(metrics["policy/kl_ref"], 0);
  near(loss, (1 / (1 + 4) + 1 / (1 + 2)) / 2); // 1 - σ(ln 4) and 1 - σ(ln 2).
});

Deno.test("KTO's apo_zero_unpaired compares rewards with 0 and needs no mismatched completion", () => {
  const { loss, metrics } = worked(kto, { beta: 1, loss: "apo_zero_unpaired" }).loss([
    ROWS[0]!,
    ROWS[2]!,
  ]);
  near(loss, (1 / (1 + 4) + 1 / (1 + 2)) / 2);
  deepStrictEqual("policy/kl_ref" in metrics, false);
  const reads = (loss: string) => unpairedOf(AlgorithmChoice.parse({ name: "kto", loss }));
  deepStrictEqual([reads("kto"), reads("apo_zero_unpaired")], [{ mismatched: true }, {
    mismatched: false,
  }]);
  strictEqual(unpairedOf(AlgorithmChoice.parse({ name: "dpo" })), null);
});

Deno.test("KTO counts a completion as right only beyond the reference point; a tie is wrong", () => {
  const accuracy = (rows: typeof ROWS) => worked(kto, {}).loss(rows).metrics["reward/accuracy"];
  const even = [labelled(1, [0.5], [0.5]), labelled(-1, [0.5], [0.5])];
  strictEqual(accuracy(even), 0);
  // The reward of the first is above 0, but the KL that is expected anyway is as large.
  strictEqual(accuracy([labelled(1, [0.5], [0.25]), labelled(0, [0.5], [0.25])]), 0);
  strictEqual(accuracy([labelled(-1, [0.5], [0.5]), labelled(0, [0.5], [0.25])]), 1);
});

Deno.test("KTO reports 0 for a kind of completion that a step lacks", () => {
  const { metrics } = worked(kto, { beta: 1 }).loss(ROWS.slice(0, 2));
  strictEqual(metrics["reward/rejected"], 0);
});

Deno.test("KTO's defaults are those of its paper's experiments and of TRL", () => {
  deepStrictEqual(defaults(kto, "beta", "loss", "desirable_weight", "undesirable_weight"), {
    beta: 0.1,
    loss: "kto",
    desirable_weight: 1,
    undesirable_weight: 1,
  });
});

Deno.test("KTO refuses weights and a beta of 0", () => {
  const zeros = { beta: 0, desirable_weight: 0, undesirable_weight: -1 };
  const refused = refusals(kto, zeros).map((text) => text.split(":")[0]);
  deepStrictEqual(refused, ["beta", "desirable_weight", "undesirable_weight"]);
});
