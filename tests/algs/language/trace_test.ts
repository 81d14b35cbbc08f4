import { deepStrictEqual, match, throws } from "node:assert/strict";
import { Expression } from "../../../data/mod.ts";
import { tokenMean, traceLoss } from "../../../algs/mod.ts";
import { refused, trace } from "./refused.ts";

Deno.test("traceLoss() offers only declared coefficients", () => {
  const declared = traceLoss(
    ({ logp, coef }, _config: unknown) => ({ loss: tokenMean(logp).mul(coef.kl) }),
    {},
    {
      coef: ["kl"],
    },
  );
  deepStrictEqual(declared.inputs, ["coef.kl", "logp", "n_tokens"]);
  throws(() =>
    trace(({ logp, coef }) => {
      // @ts-expect-error Not declared.
      return { loss: tokenMean(logp).mul(coef.kl) };
    }), TypeError);
});

Deno.test("Expression refuses a list that was tampered with", () => {
  const expression = trace(({ logp }) => ({ loss: tokenMean(logp) }));
  const broken = (change: Partial<Expression>) =>
    Expression.safeParse({ ...expression, ...change }).error?.issues[0]?.message;
  match(broken({ loss: 0 })!, /must be one number per step: current kind is token/);
  match(broken({ inputs: ["logp"] })!, /must be exactly what the nodes read: logp, n_tokens/);
  match(broken({ nodes: expression.nodes.toReversed() })!, /not an earlier one/);
});

Deno.test("traceLoss() refuses a loss that returns a number", () => {
  refused(
    4,
    /^Cannot use number as loss: a loss returns expressions/,
    () => ({ loss: 1 as never }),
  );
  refused(4, /^Cannot use string as share: /, ({ logp }) => ({
    loss: tokenMean(logp),
    metrics: { share: "all" as never },
  }));
});

Deno.test("traceLoss() calls the loss once, with its settings", () => {
  const calls: unknown[] = [];
  traceLoss(({ logp }, config) => {
    calls.push(config);
    return { loss: tokenMean(logp) };
  }, { scale: 2 });
  deepStrictEqual(calls, [{ scale: 2 }]);
});
