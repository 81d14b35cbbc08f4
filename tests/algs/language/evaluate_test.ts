import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import {
  evaluate,
  layoutOf,
  type LossFunction,
  pairMean,
  perSequenceMean,
  scalar,
  stepSum,
  tokenMean,
  traceLoss,
} from "../../../algs/mod.ts";

const trace = (loss: LossFunction<unknown>) => traceLoss(loss, {});

/** Three tokens and one; the second sequence's middle token and the third sequence are masked. */
const STEP = {
  sequences: [
    { group: 0, mask: [1, 1, 0], inputs: { logp: [1, 2, NaN], advantage: [10, 20, NaN] } },
    { group: 1, mask: [1, 0, 1], inputs: { logp: [3, NaN, 4], advantage: [30, NaN, 40] } },
    { group: 1, mask: [0], inputs: { logp: [NaN], advantage: [NaN] } },
  ],
};

Deno.test("layoutOf() lists unmasked tokens by sequence and place", () => {
  const { owner, position, length, size } = layoutOf(STEP);
  deepStrictEqual([...owner], [0, 0, 1, 1]);
  deepStrictEqual([...position], [0, 1, 0, 2]);
  deepStrictEqual([...length], [2, 2, 0]);
  deepStrictEqual(size, { token: 4, sequence: 3, pair: 1, step: 1 });
});

Deno.test("evaluate() reads no masked token, and counts no sequence without one", () => {
  const expression = trace(({ logp, advantage, n_sequences, n_groups }) => ({
    loss: tokenMean(logp.mul(advantage)),
    metrics: { n_sequences, n_groups, means: stepSum(perSequenceMean(logp)) },
  }));
  const { loss, metrics } = evaluate(expression, STEP);
  strictEqual(loss, (10 + 40 + 90 + 160) / 4);
  deepStrictEqual(metrics, { n_sequences: 2, n_groups: 2, means: 1.5 + 3.5 });
});

Deno.test("evaluate() gives a group's length to each of its sequences", () => {
  const { loss } = evaluate(
    trace(({ logp, group_length }) => ({ loss: stepSum(logp.mul(0).add(group_length)) })),
    { sequences: STEP.sequences.map((one) => ({ ...one, group: 0 })) },
  );
  strictEqual(loss, 4 * 4);
});

Deno.test("evaluate() keeps logSigmoid exact where the sigmoid rounds to 0 or 1", () => {
  const of = (score: number) =>
    evaluate(trace(({ score }) => ({ loss: stepSum(score.logSigmoid()) })), {
      sequences: [{ group: 0, mask: [1], inputs: { score } }],
    }).loss;
  strictEqual(of(-800), -800);
  strictEqual(of(40), -Math.exp(-40));
  ok(Math.abs(of(0) + Math.LN2) < 1e-15);
});

Deno.test("evaluate() holds detached values and sides where they were", () => {
  const expression = trace(({ logp }) => ({ loss: stepSum(logp.mul(logp.detach()).minimum(5)) }));
  const at = (x: number) => ({ sequences: [{ group: 0, mask: [1], inputs: { logp: [x] } }] });
  const detached = evaluate(expression, at(2));
  strictEqual(evaluate(expression, at(3)).loss, 5);
  strictEqual(evaluate(expression, at(2.25), { detached }).loss, 2.25 * 2);
  const corner = expression.nodes.findIndex(({ op }) => op === "minimum");
  const sides = new Map([[corner, [-1]]]);
  strictEqual(evaluate(expression, at(3), { detached, sides }).loss, 3 * 2);
  strictEqual(evaluate(expression, at(3), { detached, sides: new Map([[corner, [1]]]) }).loss, 5);
  strictEqual(evaluate(expression, at(3), { detached, sides: new Map([[corner, [0]]]) }).loss, 5.5);
});

Deno.test("evaluate() reads a pair's margin, 0 where the row has none", () => {
  const expression = trace(({ score, margin }) => ({
    loss: stepSum(score),
    metrics: { margin: pairMean(margin), one: scalar(1) },
  }));
  const side = (margin?: number) => ({
    group: 0,
    mask: [1],
    inputs: { score: 1, ...(margin === undefined ? {} : { margin }) },
  });
  const { metrics } = evaluate(expression, { sequences: [side(3), side(), side(), side()] });
  deepStrictEqual(metrics, { margin: 1.5, one: 1 });
});

Deno.test("evaluate() names an input that the step lacks", () => {
  const { sequences } = STEP;
  throws(
    () =>
      evaluate(trace(({ ref_logp, logp }) => ({ loss: tokenMean(logp.sub(ref_logp)) })), {
        sequences,
      }),
    {
      message: "Cannot evaluate the loss because it reads 'ref_logp', which the step lacks",
    },
  );
});
