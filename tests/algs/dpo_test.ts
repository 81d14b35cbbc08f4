import { deepStrictEqual } from "node:assert/strict";
import { ALGORITHMS } from "../../algs/mod.ts";
import { defaults, near, refusals, worked } from "./worked.ts";

const { dpo } = ALGORITHMS;

/** Ratios to the reference: 2 · 2 of the chosen completion, 1/2 of the rejected one. */
const PAIR = [{ pi: [0.5, 0.5], ref: [0.25, 0.25] }, { pi: [0.25], ref: [0.5] }];

Deno.test("DPO's sigmoid loss is -log of the probability that the chosen completion wins", () => {
  // δ = ln 4 + ln 2 = ln 8, and σ(ln 8) = 8/9.
  const { loss, metrics } = worked(dpo, { beta: 1 }).loss(PAIR);
  near(loss, Math.log(9 / 8));
  near(metrics["reward/margin"]!, 3 * Math.LN2);
  near([metrics["reward/chosen"]!, metrics["reward/rejected"]!], [2 * Math.LN2, -Math.LN2]);
  deepStrictEqual(metrics["reward/accuracy"], 1);
});

Deno.test("DPO with label smoothing mixes in the loss of the opposite label", () => {
  const { loss } = worked(dpo, { beta: 1, label_smoothing: 0.25 }).loss(PAIR);
  near(loss, 0.75 * Math.log(9 / 8) + 0.25 * Math.log(9));
});

Deno.test("DPO's ipo loss is the squared distance of the gap from 1 / (2 beta)", () => {
  near(worked(dpo, { loss: "ipo", beta: 0.25 }).loss(PAIR).loss, (3 * Math.LN2 - 2) ** 2);
});

Deno.test("DPO by length takes means over tokens in place of sums", () => {
  // δ = ln 2 + ln 2, and σ(ln 4) = 4/5.
  near(worked(dpo, { beta: 1, length_normalised: true }).loss(PAIR).loss, Math.log(5 / 4));
});

Deno.test("DPO with nll_coef adds the chosen completion's mean negative log-likelihood", () => {
  // log π of the chosen completion is -ln 2 for each of its two tokens.
  const { loss, metrics } = worked(dpo, { beta: 1, nll_coef: 0.5 }).loss(PAIR);
  near(loss, Math.log(9 / 8) + 0.5 * Math.LN2);
  near(metrics["policy/chosen_nll"]!, Math.LN2);
  near(
    worked(dpo, { loss: "ipo", beta: 0.25, nll_coef: 2 }).loss(PAIR).loss,
    (3 * Math.LN2 - 2) ** 2 + 2 * Math.LN2,
  );
});

Deno.test("DPO is the mean over pairs", () => {
  const even = [{ pi: [0.5], ref: [0.5] }, { pi: [0.5], ref: [0.5] }];
  const { loss } = worked(dpo, { beta: 1 }).loss([...PAIR, ...even]);
  near(loss, (Math.log(9 / 8) + Math.LN2) / 2);
});

Deno.test("DPO's defaults are the sigmoid with a beta of 0.1", () => {
  deepStrictEqual(
    defaults(dpo, "beta", "loss", "label_smoothing", "length_normalised", "nll_coef"),
    {
      beta: 0.1,
      loss: "sigmoid",
      label_smoothing: 0,
      length_normalised: false,
      nll_coef: 0,
    },
  );
});

Deno.test("DPO refuses label smoothing with ipo, and a share of half the labels", () => {
  deepStrictEqual(refusals(dpo, { loss: "ipo", label_smoothing: 0.1 }), [
    "label_smoothing: has no meaning for ipo, whose target does not depend on the labels' " +
    "certainty: leave it out",
  ]);
  const half = refusals(dpo, { label_smoothing: 0.5 }).map((text) => text.split(":")[0]);
  deepStrictEqual(half, ["label_smoothing"]);
});
