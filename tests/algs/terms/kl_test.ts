import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import {
  ALGORITHMS,
  type AnyAlgorithm,
  checkKl,
  defineAlgorithm,
  evaluate,
  type EvaluatedStep,
  klCoef,
  klSettings,
  klTerm,
  stepSum,
  traceAlgorithm,
} from "../../../algs/mod.ts";

const Settings = z.strictObject(klSettings()).superRefine(checkKl);
const messages = (changes: z.input<typeof Settings>) =>
  Settings.safeParse(changes).error?.issues.map((i) => i.message);
const near = (a: number, b: number, tolerance: number) =>
  ok(Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(b)), `${a} is not near ${b}`);

/**
 * The expected KL term over a vocabulary: one sequence of one token for each word, weighted by its
 * probability.
 */
const expected = defineAlgorithm({
  name: "expected",
  config: Settings,
  coef: klCoef,
  loss: (x, c) => ({ loss: stepSum(klTerm(x, c)!.mul(x.advantage)) }),
});

function logSoftmax(logits: readonly number[]): number[] {
  const top = Math.max(...logits);
  const log = top + Math.log(logits.reduce((sum, x) => sum + Math.exp(x - top), 0));
  return logits.map((x) => x - log);
}

/**
 * Words of a vocabulary with the policy's logits moved; weights and `old_logp` stay those of
 * `logits`.
 */
function vocabulary(
  logits: number[],
  reference: number[],
  moved: number[] = logits,
): EvaluatedStep {
  const [logp, old_logp, ref_logp] = [moved, logits, reference].map(logSoftmax) as [
    number[],
    number[],
    number[],
  ];
  const sequences = logits.map((_, y) => ({
    group: 0,
    mask: [1],
    inputs: {
      logp: [logp[y]!],
      old_logp: [old_logp[y]!],
      ref_logp: [ref_logp[y]!],
      advantage: Math.exp(old_logp[y]!),
    },
  }));
  return { sequences, coef: { kl: 1 } };
}

/** d expected term ÷ d logit, by central differences with every `detach` frozen. */
function gradient(kl_estimator: string, logits: number[], reference: number[]): number[] {
  const { loss } = traceAlgorithm(expected, { kl_coef: 1, kl_estimator });
  const base = evaluate(loss, vocabulary(logits, reference));
  const h = 1e-5;
  return logits.map((_, j) => {
    const at = (offset: number) => logits.map((x, k) => (k === j ? x + offset : x));
    const value = (offset: number) =>
      evaluate(loss, vocabulary(logits, reference, at(offset)), { detached: base }).loss;
    return (value(h) - value(-h)) / (2 * h);
  });
}

const logits = fc.array(fc.double({ min: -2, max: 2, noNaN: true }), {
  minLength: 4,
  maxLength: 4,
});

Deno.test("klTerm() is the KL in expectation for k3, k3_k2 and k3_weighted", () => {
  fc.assert(fc.property(logits, logits, (policy, reference) => {
    const [logp, ref] = [logSoftmax(policy), logSoftmax(reference)];
    const kl = logp.reduce((sum, l, y) => sum + Math.exp(l) * (l - ref[y]!), 0);
    for (const kl_estimator of ["k3", "k3_k2", "k3_weighted"]) {
      const { loss } = traceAlgorithm(expected, { kl_coef: 1, kl_estimator });
      near(evaluate(loss, vocabulary(policy, reference)).loss, kl, 1e-12);
    }
  }));
});

Deno.test("klTerm() has the gradient of KL(policy, reference), but for k3 of the reverse", () => {
  fc.assert(
    fc.property(logits, logits, (policy, reference) => {
      const [logp, ref] = [logSoftmax(policy), logSoftmax(reference)];
      const kl = logp.reduce((sum, l, y) => sum + Math.exp(l) * (l - ref[y]!), 0);
      const reverse = logp.map((l, y) => Math.exp(l) * (l - ref[y]! - kl));
      const forward = logp.map((l, y) => Math.exp(l) - Math.exp(ref[y]!));
      for (const estimator of ["k2", "k3_k2", "k3_weighted"]) {
        gradient(estimator, policy, reference).forEach((g, j) => near(g, reverse[j]!, 1e-8));
      }
      gradient("k3", policy, reference).forEach((g, j) => near(g, forward[j]!, 1e-8));
    }),
    { numRuns: 30 },
  );
});

Deno.test("klSettings refuse estimators that are wrong where they stand", () => {
  deepStrictEqual(messages({ kl_estimator: "k1" }), [
    "k1 in the loss has expected gradient 0 as a loss, so it would have no effect: use k2, k3, " +
    "k3_k2 or k3_weighted",
  ]);
  deepStrictEqual(messages({ kl_in: "reward", kl_estimator: "k2" }), [
    "k2 in the reward is biased as a reward: use k1 or k3",
  ]);
  deepStrictEqual(messages({ kl_in: "advantage", kl_estimator: "k2" }), [
    "k2 in the advantage is biased as a reward: use k1 or k3",
  ]);
  deepStrictEqual(messages({ kl_in: "reward", kl_estimator: "k3_k2" })?.length, 1);
  deepStrictEqual(messages({ kl_in: "reward", kl_estimator: "k3_weighted" })?.length, 1);
  deepStrictEqual(messages({ kl_target: 6 }), [
    "steers a weight that starts at 0 and so stays 0: set kl_coef to a start value, e.g. 0.1",
  ]);
  for (const kl_estimator of ["k1", "k3"] as const) {
    strictEqual(messages({ kl_in: "reward", kl_estimator }), undefined);
  }
  for (const kl_estimator of ["k2", "k3", "k3_k2", "k3_weighted"] as const) {
    strictEqual(messages({ kl_estimator }), undefined);
  }
});

Deno.test("a KL in the reward under a deviation needs kl_scaled", () => {
  const kl = { kl_coef: 0.1, kl_in: "reward", kl_estimator: "k1" };
  const refused: string[] = [];
  const may = (Object.values(ALGORITHMS) as AnyAlgorithm[]).filter(({ config }) =>
    "kl_in" in config.shape && config.safeParse({ kl_in: "reward", kl_coef: 0 }).success
  );
  for (const { name, config } of may) {
    const issues = config.safeParse(kl).error?.issues.map(({ path, message }) =>
      `${path}: ${message}`
    ) ?? [];
    if (issues.length > 0) refused.push(name);
    ok(
      issues.every((issue) =>
        /^kl_in: puts the KL under .* use advantage or loss, or .* kl_scaled: true$/.test(issue)
      ),
    );
    ok(config.safeParse({ ...kl, kl_coef: 0 }).success, `${name} refuses a KL that is not there`);
    if (issues.length > 0) ok(config.safeParse({ ...kl, kl_scaled: true }).success);
  }
  // Those whose advantages do not change where rewards are scaled.
  const scaled = may.filter(({ config }) => "std_epsilon" in config.shape);
  deepStrictEqual(refused.sort(), scaled.map(({ name }) => name).sort());
});

Deno.test("klTerm() reads the steered weight only where there is one", () => {
  const fixed = traceAlgorithm(expected, { kl_coef: 0.5 }).loss;
  const steered = traceAlgorithm(expected, { kl_coef: 0.5, kl_target: 6 }).loss;
  strictEqual(fixed.inputs.includes("coef.kl"), false);
  strictEqual(steered.inputs.includes("coef.kl"), true);
  const step = vocabulary([0, 1, 0, 0], [0, 0, 0, 0]);
  near(evaluate(fixed, step).loss, 0.5 * evaluate(steered, step).loss, 1e-15);
});
