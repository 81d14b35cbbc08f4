import { deepStrictEqual, match, ok, strictEqual, throws } from "node:assert/strict";
import { Expression } from "../../data/mod.ts";
import {
  chosen,
  evaluate,
  type Expr,
  expressionText,
  k3,
  LossError,
  type LossFunction,
  pairMean,
  perSequenceMean,
  perSequenceSum,
  rejected,
  scalar,
  sequenceMean,
  stepSum,
  tokenMean,
  traceLoss,
  where,
} from "../../algs/mod.ts";

const trace = (loss: LossFunction<unknown>) => traceLoss(loss, {});

function refused(rule: number, pattern: RegExp, loss: LossFunction<unknown>): void {
  throws(() => trace(loss), (error: unknown) => {
    ok(error instanceof LossError);
    strictEqual(error.facts.rule, rule);
    match(error.message, pattern);
    return true;
  });
}

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

Deno.test("Expr's kind is the finer one of its operands", () => {
  trace(({ logp, score, margin, n_tokens }) => {
    const token: Expr<"token"> = logp.add(perSequenceSum(logp)).mul(n_tokens).sub(1);
    const back: Expr<"token"> = n_tokens.mul(score).mul(logp);
    const sequence: Expr<"sequence"> = perSequenceMean(logp).div(n_tokens);
    const pair: Expr<"pair"> = scalar(0).lt(chosen(sequence).sub(rejected(sequence)).sub(margin));
    // @ts-expect-error A token is no sequence.
    const wrong: Expr<"sequence"> = logp.mul(sequence);
    deepStrictEqual([token, back, sequence, pair, wrong].map(({ kind }) => kind), [
      "token",
      "token",
      "sequence",
      "pair",
      "token",
    ]);
    return { loss: tokenMean(logp) };
  });
});

Deno.test("traceLoss() offers only declared coefficients", () => {
  const declared = traceLoss(({ logp, coef }, _config: unknown) => ({ loss: tokenMean(logp).mul(coef.kl) }), {}, {
    coef: ["kl"],
  });
  deepStrictEqual(declared.inputs, ["coef.kl", "logp", "n_tokens"]);
  throws(() =>
    trace(({ logp, coef }) => {
      // @ts-expect-error Not declared.
      return { loss: tokenMean(logp).mul(coef.kl) };
    }), TypeError);
});

Deno.test("Expr throws when it is used as a number, text or JSON", () => {
  refused(0, /has no value while the loss is traced/, ({ logp }) => {
    // @ts-expect-error No ordinary comparison.
    return { loss: logp > 1 ? tokenMean(logp) : tokenMean(logp.neg()) };
  });
  refused(0, /has no value/, ({ logp }) => ({ loss: tokenMean(logp.mul(Number(`${logp}`))) }));
  refused(
    0,
    /has no value/,
    ({ logp }) => ({ loss: tokenMean(logp), metrics: { [JSON.stringify(logp)]: tokenMean(logp) } }),
  );
  refused(0, /not finite/, ({ logp }) => ({ loss: tokenMean(logp.mul(Infinity)) }));
  refused(0, /lo must be at most hi/, ({ logp }) => ({ loss: tokenMean(logp.clamp(1, 0)) }));
});

Deno.test("rule 1: the loss is linear in its live sums", () => {
  refused(1, /under square/, ({ logp }) => ({ loss: tokenMean(logp).square() }));
  refused(1, /under exp/, ({ logp }) => ({ loss: tokenMean(logp).exp() }));
  refused(1, /multiplied with another/, ({ logp }) => ({ loss: tokenMean(logp).mul(tokenMean(logp)) }));
  refused(1, /in a denominator/, ({ logp }) => ({ loss: tokenMean(logp).div(stepSum(logp)) }));
  refused(1, /no gradient/, ({ logp }) => ({ loss: tokenMean(logp.detach()) }));
  refused(1, /no gradient/, ({ advantage }) => ({ loss: tokenMean(advantage) }));
  trace(({ logp, advantage, n_groups }) => ({
    loss: tokenMean(logp).mul(2).div(n_groups).sub(stepSum(logp).mul(stepSum(advantage)).neg()).add(1),
  }));
});

Deno.test("rule 2: a live sum inside another, or in a condition, is a statistic and stands under detach()", () => {
  refused(2, /inside another sum/, ({ logp }) => ({ loss: tokenMean(logp.sub(tokenMean(logp))) }));
  refused(2, /inside another sum/, ({ logp }) => ({ loss: tokenMean(logp.mul(scalar(0).lt(tokenMean(logp)))) }));
  refused(2, /in a condition/, ({ logp }) => ({ loss: where(tokenMean(logp).lt(0), tokenMean(logp), scalar(0)) }));
  trace(({ logp }) => ({ loss: tokenMean(logp.sub(tokenMean(logp).detach())) }));
  trace(({ logp }) => ({ loss: tokenMean(logp.sub(tokenMean(logp.detach()).square())) }));
});

Deno.test("rule 3: an expression reads one model's live inputs", () => {
  refused(3, /'logp' and 'values'/, ({ logp, values }) => ({ loss: tokenMean(logp.add(values)) }));
  refused(3, /two models/, ({ logp, score }) => ({ loss: tokenMean(logp), metrics: { x: sequenceMean(score) } }));
});

Deno.test("rule 4: metrics are free of the other rules", () => {
  const { metrics } = trace(({ logp }) => ({
    loss: tokenMean(logp),
    metrics: { "policy/variance": tokenMean(logp.sub(tokenMean(logp)).square()), "policy/fixed": scalar(1) },
  }));
  deepStrictEqual(Object.keys(metrics), ["policy/fixed", "policy/variance"]);
});

Deno.test("traceLoss() lists what is read and nothing else, a shared part once", () => {
  const expression = trace(({ logp, old_logp, advantage, ref_logp }) => {
    void ref_logp.sub(logp); // Traced, never used.
    const again = () => logp.sub(old_logp).exp();
    return { loss: tokenMean(again().mul(advantage).add(again())) };
  });
  deepStrictEqual(expression.inputs, ["advantage", "logp", "n_tokens", "old_logp"]);
  strictEqual(expression.nodes.filter(({ op }) => op === "exp").length, 1);
  deepStrictEqual(Expression.parse(JSON.parse(JSON.stringify(expression))), expression);
});

Deno.test("traceLoss() gives the same JSON for the same loss, whatever the order of its metrics", () => {
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

Deno.test("Expression refuses a list that was tampered with", () => {
  const expression = trace(({ logp }) => ({ loss: tokenMean(logp) }));
  const broken = (change: Partial<Expression>) =>
    Expression.safeParse({ ...expression, ...change }).error?.issues[0]?.message;
  match(broken({ loss: 0 })!, /must be one number per step: current kind is token/);
  match(broken({ inputs: ["logp"] })!, /must be exactly what the nodes read: logp, n_tokens/);
  match(broken({ nodes: expression.nodes.toReversed() })!, /not an earlier one/);
});

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

Deno.test("k3() summed over a vocabulary is the KL divergence, is never negative and agrees with k2 to third order", () => {
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
    metrics: { least: stepSum(k3(logp, ref_logp).lt(0)), k1: stepSum(logp.sub(ref_logp).mul(advantage)) },
  }));
  const { loss, metrics } = evaluate(expression, { sequences });
  const kl = policy.reduce((sum, p, i) => sum + p * Math.log(p / reference[i]!), 0);
  ok(Math.abs(loss - kl) < 1e-15);
  ok(Math.abs(metrics.k1! - kl) < 1e-15);
  strictEqual(metrics.least, 0);
  for (const d of [1e-1, 1e-2, 1e-3]) {
    const near = { sequences: [{ group: 0, mask: [1], inputs: { logp: [d], ref_logp: [0], advantage: 1 } }] };
    ok(Math.abs(evaluate(expression, near).loss - d * d / 2) < d ** 3 / 5);
  }
});
