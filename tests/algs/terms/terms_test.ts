import { deepStrictEqual, ok } from "node:assert/strict";
import { z } from "zod";
import {
  checkTerms,
  defineAlgorithm,
  evaluate,
  termExamples,
  termMetrics,
  termSettings,
  tokenMean,
  traceAlgorithm,
} from "../../../algs/mod.ts";

const Settings = z.strictObject(termSettings({ aggregation: "group_mean", kl_coef: 0.5 }))
  .superRefine(checkTerms);

const measured = defineAlgorithm({
  name: "measured",
  config: Settings,
  coef: { kl: () => 1 },
  loss: (x, c) => ({ loss: tokenMean(x.logp), metrics: termMetrics(x, c) }),
});

Deno.test("termSettings() has the algorithm's first values, and every other term off", () => {
  deepStrictEqual(Settings.parse({}), {
    aggregation: "group_mean",
    loss_denominator: 1,
    kl_coef: 0.5,
    kl_in: "loss",
    kl_estimator: "k3",
    kl_target: null,
    kl_horizon: 10_000,
    entropy_coef: 0,
    importance: "none",
    importance_low: 0,
    importance_high: 2,
    mask_truncated: false,
  });
});

Deno.test("termSettings() offers the places of the KL that the algorithm has", () => {
  const { kl_in } = termSettings({ aggregation: "token_mean", kl_places: ["loss", "reward"] });
  deepStrictEqual(kl_in.safeParse("reward").success, true);
  deepStrictEqual(kl_in.safeParse("advantage").success, false);
});

Deno.test("checkTerms() refuses what does not go together in any term", () => {
  const wrong = { loss_denominator: 2, kl_estimator: "k1", importance_low: 3 } as const;
  const places = Settings.safeParse(wrong).error?.issues.map(({ path }) => path[0]);
  deepStrictEqual(places, ["loss_denominator", "kl_estimator", "importance_low"]);
});

Deno.test("termExamples pass the checks of an algorithm with a deviation", () => {
  const scaled = z.strictObject({ ...Settings.shape, kl_scaled: z.boolean().default(false) })
    .superRefine(checkTerms);
  deepStrictEqual(termExamples.filter((some) => !scaled.safeParse(some).success), []);
});

Deno.test("termMetrics() has the mean over tokens of each term that is on", () => {
  const inputs = {
    logp: [0, 0],
    ref_logp: [-1, -3],
    entropy: [2, 4],
    old_logp: [0, Math.log(3)],
    behaviour_logp: [0, 0],
  };
  const metrics = (settings: z.input<typeof Settings>) =>
    evaluate(traceAlgorithm(measured, settings).loss, {
      sequences: [{ group: 0, mask: [1, 1], inputs }],
      coef: { kl: 1 },
    }).metrics;
  deepStrictEqual(metrics({ kl_coef: 0 }), {});
  const all = metrics({ kl_estimator: "k2", entropy_coef: 0.1, importance: "token_mask" });
  deepStrictEqual(Object.keys(all), [
    "policy/entropy",
    "policy/importance_weight",
    "policy/kl_ref",
  ]);
  deepStrictEqual(all["policy/entropy"], 3);
  deepStrictEqual(all["policy/kl_ref"], (1 / 2 + 9 / 2) / 2);
  ok(Math.abs(all["policy/importance_weight"]! - 2) < 1e-15); // before any bound
});
