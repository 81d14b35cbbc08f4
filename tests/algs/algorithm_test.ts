import { deepStrictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import { defineAlgorithm, LossError, scalar, tokenMean, traceAlgorithm } from "../../algs/mod.ts";

Deno.test("defineAlgorithm() types credit's argument by what it needs", () => {
  defineAlgorithm({
    name: "typed",
    config: z.strictObject({ beta: z.number() }),
    credit: {
      needs: ["ref_logp"],
      assign: ({ reward, ref_logp }, { beta }) => ({
        advantage: reward.map((r, i) => r - beta * ref_logp[i]![0]!),
      }),
    },
    loss: ({ logp, advantage }, { beta }) => ({ loss: tokenMean(logp.mul(advantage).mul(beta)) }),
  });
  defineAlgorithm({
    name: "wrong",
    config: z.strictObject({}),
    // @ts-expect-error `values` is not among what it needs.
    credit: { needs: ["ref_logp"], assign: ({ values }) => ({ advantage: values }) },
    loss: ({ logp }) => ({ loss: tokenMean(logp) }),
  });
});

const critic = defineAlgorithm({
  name: "critic",
  config: z.strictObject({ scale: z.number().default(2) }),
  coef: { kl: ({ scale }) => scale },
  loss: ({ logp, coef }, { scale }) => ({ loss: tokenMean(logp.mul(coef.kl).mul(scale)) }),
  value_loss: ({ values, returns }) => ({ loss: tokenMean(values.sub(returns).square()) }),
});

Deno.test("traceAlgorithm() fills in defaults, and traces both losses", () => {
  const { loss, value_loss } = traceAlgorithm(critic, {});
  deepStrictEqual(loss.inputs, ["coef.kl", "logp", "n_tokens"]);
  deepStrictEqual(value_loss!.inputs, ["n_tokens", "returns", "values"]);
  deepStrictEqual(loss, traceAlgorithm(critic, { scale: 2 }).loss);
  const scales = loss.nodes.flatMap((node) => (node.op === "scalar" ? [node.value] : []));
  deepStrictEqual(scales, [2]);
});

Deno.test("traceAlgorithm() has no value loss where the algorithm has none", () => {
  const { value_loss: _, ...plain } = critic;
  deepStrictEqual(Object.keys(traceAlgorithm(plain, {})), ["loss"]);
});

Deno.test("traceAlgorithm() refuses settings that the algorithm lacks, and a broken loss", () => {
  throws(() => traceAlgorithm(critic, { scales: 3 }), /Unrecognized key/);
  const constant = { ...critic, loss: () => ({ loss: scalar(1) }) };
  throws(() => traceAlgorithm(constant, {}), LossError);
});
