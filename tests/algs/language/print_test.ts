import { strictEqual } from "node:assert/strict";
import { nodeText } from "../../../algs/language/print.ts";
import {
  chosen,
  expressionText,
  type LossFunction,
  pairMean,
  scalar,
  tokenMean,
  traceLoss,
  where,
} from "../../../algs/mod.ts";

const trace = (loss: LossFunction<unknown>) => traceLoss(loss, {});

Deno.test("expressionText() writes a loss as the language is written", () => {
  const expression = trace(({ logp, old_logp, advantage }) => {
    const ratio = logp.sub(old_logp).exp();
    return {
      loss: tokenMean(ratio.mul(advantage).minimum(ratio.clamp(0.8, Infinity)).neg()),
      metrics: { ratio: tokenMean(ratio) },
    };
  });
  strictEqual(
    expressionText(expression),
    [
      "reads advantage // token",
      "reads logp // token, live",
      "reads n_tokens // step",
      "reads old_logp // token",
      "v1 = logp.sub(old_logp).exp() // token",
      "loss = stepSum(v1.mul(advantage).minimum(v1.clamp(0.8, Infinity)).neg()).div(n_tokens)",
      "metric ratio = stepSum(v1).div(n_tokens)",
      "",
    ].join("\n"),
  );
});

Deno.test("expressionText() writes choices and reductions as functions, metrics last", () => {
  const expression = trace(({ score }) => ({
    loss: pairMean(where(chosen(score).lt(0), chosen(score), 1)),
    metrics: { one: scalar(1) },
  }));
  strictEqual(
    expressionText(expression),
    [
      "reads n_pairs // step",
      "reads score // sequence, live",
      "v1 = chosen(score) // pair",
      "loss = stepSum(where(v1.lt(0), v1, 1)).div(n_pairs)",
      "metric one = scalar(1)",
      "",
    ].join("\n"),
  );
});

Deno.test("nodeText() shows an error's node a few levels deep", () => {
  const { nodes, loss } = trace(({ logp }) => ({
    loss: tokenMean(logp.exp().neg().exp().neg().exp()),
  }));
  strictEqual(nodeText(nodes, loss), "stepSum(….neg().exp()).div(n_tokens)");
});
