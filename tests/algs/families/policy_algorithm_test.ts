import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { policyGradient, tokenMean, traceAlgorithm } from "../../../algs/mod.ts";
import { policyAlgorithm } from "../../../algs/families/policy_algorithm.ts";

const clip = { clip_low: 0.1, clip_high: 0.3 };
const defaults = { ...clip, aggregation: "token_mean", kl_coef: 0.5 } as const;
const loss = () => {
  throw new Error("It has a different one.");
};

Deno.test("policyAlgorithm() has the settings of every term and its own, with its defaults", () => {
  const settings = { bonus: z.number().default(2) };
  const algorithm = policyAlgorithm(loss)(
    { name: "own", defaults, settings, advantage: ({ reward }) => reward },
  );
  const { bonus, clip_low, clip_high, kl_coef, kl_in } = algorithm.config.parse({});
  deepStrictEqual([bonus, clip_low, clip_high, kl_coef, kl_in], [2, 0.1, 0.3, 0.5, "loss"]);
  strictEqual(algorithm.config.safeParse({ other: 1 }).success, false);
});

Deno.test("policyAlgorithm() checks the clip, its own settings and the terms", () => {
  const { config } = policyGradient({
    name: "own",
    defaults,
    settings: { bonus: z.number().default(2) },
    check: ({ bonus, kl_coef }, ctx) => {
      const message = "is too small";
      if (bonus < kl_coef) ctx.addIssue({ code: "custom", path: ["bonus"], message });
    },
    advantage: ({ reward }) => reward,
  });
  const wrong = { dual_clip: 1.2, bonus: 0, kl_estimator: "k1" };
  const paths = config.safeParse(wrong).error?.issues.map(({ path }) => path[0]);
  deepStrictEqual(paths, ["dual_clip", "bonus", "kl_estimator"]);
});

Deno.test("policyAlgorithm() needs what advantages and the KL read, and types it", () => {
  const { credit } = policyGradient({
    name: "own",
    defaults: { ...defaults, kl_in: "reward", kl_estimator: "k1" },
    settings: {},
    needs: ["values"],
    advantage: ({ values, reward }) => reward.map((r, i) => r - values[i]![0]!),
  });
  policyGradient({
    name: "wrong",
    defaults,
    settings: {},
    // @ts-expect-error `values` is not among what it needs.
    advantage: ({ values }) => values,
  });
  const needs = credit!.needs as (c: unknown) => string[];
  deepStrictEqual(needs({ kl_coef: 0, kl_in: "reward" }), ["values"]);
  const scored = needs({ kl_coef: 1, kl_in: "reward", kl_target: null });
  deepStrictEqual(scored, ["values", "old_logp", "ref_logp"]);
});

Deno.test("policyAlgorithm() keeps a loss that the algorithm states", () => {
  const algorithm = policyAlgorithm(loss)({
    name: "own",
    defaults,
    settings: {},
    advantage: ({ reward }) => reward,
    loss: ({ logp, coef }, { clip_low }) => ({ loss: tokenMean(logp.mul(coef.kl).mul(clip_low)) }),
  });
  deepStrictEqual(traceAlgorithm(algorithm, {}).loss.inputs, ["coef.kl", "logp", "n_tokens"]);
});
