import { ok, strictEqual } from "node:assert/strict";
import { clipFraction } from "../../../algs/mod.ts";
import {
  evaluate,
  k1,
  k2,
  k3,
  type LossFunction,
  stepSum,
  tokenMean,
  traceLoss,
} from "../../../algs/mod.ts";

const trace = (loss: LossFunction<unknown>) => traceLoss(loss, {});

Deno.test("k3() summed over a vocabulary is the KL divergence, never negative, near to k2", () => {
  const policy = [0.5, 0.2, 0.2, 0.1];
  const reference = [0.4, 0.3, 0.1, 0.2];
  // One sequence per word, weighted by its probability through the advantage.
  const sequences = policy.map((p, i) => ({
    group: 0,
    mask: [1],
    inputs: { logp: [Math.log(p)], ref_logp: [Math.log(reference[i]!)], advantage: [p] },
  }));
  const expression = trace(({ logp, ref_logp, advantage }) => ({
    loss: stepSum(k3(logp, ref_logp).mul(advantage)),
    metrics: {
      least: stepSum(k3(logp, ref_logp).lt(0)),
      k1: stepSum(logp.sub(ref_logp).mul(advantage)),
    },
  }));
  const { loss, metrics } = evaluate(expression, { sequences });
  const kl = policy.reduce((sum, p, i) => sum + p * Math.log(p / reference[i]!), 0);
  ok(Math.abs(loss - kl) < 1e-15);
  ok(Math.abs(metrics.k1! - kl) < 1e-15);
  strictEqual(metrics.least, 0);
  for (const d of [1e-1, 1e-2, 1e-3]) {
    const near = {
      sequences: [{ group: 0, mask: [1], inputs: { logp: [d], ref_logp: [0], advantage: 1 } }],
    };
    ok(Math.abs(evaluate(expression, near).loss - d * d / 2) < d ** 3 / 5);
  }
});

/** The values of two expressions of one token with log-probabilities a and b. */
function terms(a: number, b: number, loss: LossFunction<unknown>): Record<string, number> {
  const inputs = { logp: [a], ref_logp: [b] };
  return evaluate(trace(loss), { sequences: [{ group: 0, mask: [1], inputs }] }).metrics;
}

Deno.test("k1(), k2() and k3() are d, half its square, and exp(-d) - 1 + d", () => {
  const found = terms(Math.log(4), Math.log(2), ({ logp, ref_logp }) => ({
    loss: tokenMean(logp),
    metrics: {
      k1: tokenMean(k1(logp, ref_logp)),
      k2: tokenMean(k2(logp, ref_logp)),
      k3: tokenMean(k3(logp, ref_logp)),
    },
  }));
  const exact = { k1: Math.LN2, k2: Math.LN2 ** 2 / 2, k3: 0.5 - 1 + Math.LN2 };
  for (const [name, value] of Object.entries(exact)) ok(Math.abs(found[name]! - value) < 1e-15);
});

Deno.test("clipFraction() counts tokens beyond either bound, and not those at one", () => {
  const expression = trace(({ logp }) => ({
    loss: tokenMean(logp),
    metrics: { clipped: clipFraction(logp, { clip_low: 0.5, clip_high: 1 }) },
  }));
  const logp = [0.25, 0.5, 1, 2, 2.25];
  const { metrics } = evaluate(expression, {
    sequences: [{ group: 0, mask: logp.map(() => 1), inputs: { logp } }],
  });
  strictEqual(metrics.clipped, 2 / 5);
});
