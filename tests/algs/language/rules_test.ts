import { deepStrictEqual } from "node:assert/strict";
import { scalar, sequenceMean, stepSum, tokenMean, where } from "../../../algs/mod.ts";
import { refused, trace } from "./refused.ts";

Deno.test("rule 1: the loss is linear in its live sums", () => {
  refused(1, /under square/, ({ logp }) => ({ loss: tokenMean(logp).square() }));
  refused(1, /under exp/, ({ logp }) => ({ loss: tokenMean(logp).exp() }));
  refused(
    1,
    /multiplied with another/,
    ({ logp }) => ({ loss: tokenMean(logp).mul(tokenMean(logp)) }),
  );
  refused(1, /in a denominator/, ({ logp }) => ({ loss: tokenMean(logp).div(stepSum(logp)) }));
  refused(1, /no gradient/, ({ logp }) => ({ loss: tokenMean(logp.detach()) }));
  refused(1, /no gradient/, ({ advantage }) => ({ loss: tokenMean(advantage) }));
  trace(({ logp, advantage, n_groups }) => ({
    loss: tokenMean(logp).mul(2).div(n_groups).sub(stepSum(logp).mul(stepSum(advantage)).neg()).add(
      1,
    ),
  }));
});

Deno.test("rule 2: a live sum inside a sum or a condition must be detached", () => {
  refused(2, /inside another sum/, ({ logp }) => ({ loss: tokenMean(logp.sub(tokenMean(logp))) }));
  refused(
    2,
    /inside another sum/,
    ({ logp }) => ({ loss: tokenMean(logp.mul(scalar(0).lt(tokenMean(logp)))) }),
  );
  refused(
    2,
    /in a condition/,
    ({ logp }) => ({ loss: where(tokenMean(logp).lt(0), tokenMean(logp), scalar(0)) }),
  );
  trace(({ logp }) => ({ loss: tokenMean(logp.sub(tokenMean(logp).detach())) }));
  trace(({ logp }) => ({ loss: tokenMean(logp.sub(tokenMean(logp.detach()).square())) }));
});

Deno.test("rule 3: an expression reads one model's live inputs", () => {
  refused(3, /'logp' and 'values'/, ({ logp, values }) => ({ loss: tokenMean(logp.add(values)) }));
  refused(
    3,
    /two models/,
    ({ logp, score }) => ({ loss: tokenMean(logp), metrics: { x: sequenceMean(score) } }),
  );
});

Deno.test("rule 4: metrics are free of the other rules", () => {
  const { metrics } = trace(({ logp }) => ({
    loss: tokenMean(logp),
    metrics: {
      "policy/variance": tokenMean(logp.sub(tokenMean(logp)).square()),
      "policy/fixed": scalar(1),
    },
  }));
  deepStrictEqual(Object.keys(metrics), ["policy/fixed", "policy/variance"]);
});
