import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { Expression } from "../../../data/mod.ts";
import { type LossFunction, tokenMean, traceLoss } from "../../../algs/mod.ts";

const trace = (loss: LossFunction<unknown>) => traceLoss(loss, {});

Deno.test("canonical() lists what is read and nothing else, a shared part once", () => {
  const expression = trace(({ logp, old_logp, advantage, ref_logp }) => {
    void ref_logp.sub(logp); // Traced, never used.
    const again = () => logp.sub(old_logp).exp();
    return { loss: tokenMean(again().mul(advantage).add(again())) };
  });
  deepStrictEqual(expression.inputs, ["advantage", "logp", "n_tokens", "old_logp"]);
  strictEqual(expression.nodes.filter(({ op }) => op === "exp").length, 1);
  deepStrictEqual(Expression.parse(JSON.parse(JSON.stringify(expression))), expression);
});

Deno.test("canonical() gives the same JSON for the same loss in any order of metrics", () => {
  const one = trace(({ logp }) => ({
    loss: tokenMean(logp),
    metrics: { b: tokenMean(logp.exp()), a: tokenMean(logp) },
  }));
  const two = trace(({ logp }) => ({
    metrics: { a: tokenMean(logp), b: tokenMean(logp.exp()) },
    loss: tokenMean(logp),
  }));
  strictEqual(JSON.stringify(one), JSON.stringify(two));
});

Deno.test("canonical() places operands before what reads them, left to right", () => {
  const { nodes, loss } = trace(({ logp, advantage }) => ({
    loss: tokenMean(logp.mul(advantage)),
  }));
  const ops = nodes.map((node) => (node.op === "input" ? node.name : node.op));
  deepStrictEqual(ops, ["logp", "advantage", "mul", "stepSum", "n_tokens", "div"]);
  strictEqual(loss, 5);
});
