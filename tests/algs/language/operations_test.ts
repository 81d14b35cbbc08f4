import { strictEqual } from "node:assert/strict";
import {
  chosen,
  evaluate,
  groupMean,
  type LossFunction,
  pairMean,
  perSequenceMean,
  perSequenceSum,
  rejected,
  sequenceMean,
  stepSum,
  tokenMean,
  where,
} from "../../../algs/mod.ts";
import { refused, trace } from "./refused.ts";

Deno.test("Expr refuses kinds that do not meet, when compiling and when tracing", () => {
  refused(0, /a pair meets only pairs/, ({ margin, logp }) => {
    // @ts-expect-error A pair has no tokens.
    return { loss: pairMean(margin.mul(logp)) };
  });
  refused(0, /a pair meets only pairs/, ({ margin, score }) => {
    // @ts-expect-error A sequence is not a pair: `chosen` or `rejected` makes it one.
    return { loss: pairMean(score.sub(margin)) };
  });
  refused(0, /a pair meets only pairs/, ({ margin, logp, advantage }) => {
    // @ts-expect-error Nor may a choice mix them.
    return { loss: tokenMean(where(advantage, logp, margin)) };
  });
  refused(0, /takes a token value/, ({ score }) => {
    // @ts-expect-error It is a sequence already.
    return { loss: sequenceMean(perSequenceSum(score)) };
  });
  refused(0, /takes a sequence value/, ({ logp }) => {
    // @ts-expect-error Tokens of a pair must be summed first.
    return { loss: pairMean(chosen(logp)) };
  });
  refused(0, /takes a token or sequence or pair value/, ({ n_tokens }) => {
    // @ts-expect-error There is nothing to sum.
    return { loss: stepSum(n_tokens) };
  });
  // @ts-expect-error A loss is one number.
  refused(4, /must be one number per step/, ({ logp }) => ({ loss: logp }));
});

/** Two sequences of two tokens each, the last of them masked. */
const STEP = {
  sequences: [[1, 2], [3, 9]].map((logp, i) => ({
    group: i,
    mask: [1, 1 - i],
    inputs: { logp, score: logp[0]! },
  })),
};
const value = (loss: LossFunction<unknown>) => evaluate(trace(loss), STEP).loss;

Deno.test("means divide the sum over the step by its tokens, sequences, groups or pairs", () => {
  strictEqual(value(({ logp }) => ({ loss: stepSum(logp) })), 6);
  strictEqual(value(({ logp }) => ({ loss: tokenMean(logp) })), 2);
  strictEqual(value(({ logp }) => ({ loss: sequenceMean(logp) })), 3);
  strictEqual(value(({ logp }) => ({ loss: groupMean(logp) })), 3);
  strictEqual(value(({ score }) => ({ loss: pairMean(chosen(score).sub(rejected(score))) })), -2);
});

Deno.test("perSequenceSum() and perSequenceMean() leave masked tokens out", () => {
  strictEqual(value(({ logp }) => ({ loss: stepSum(perSequenceSum(logp)) })), 3 + 3);
  strictEqual(value(({ logp }) => ({ loss: stepSum(perSequenceMean(logp)) })), 1.5 + 3);
});

Deno.test("where() takes the first value where the condition is not 0", () => {
  strictEqual(value(({ logp }) => ({ loss: stepSum(where(logp.lt(2), logp, 10)) })), 1 + 10 + 10);
});
