/**
 * What every policy-gradient loss may have besides its own formula: KL, entropy, importance
 * correction, aggregation, truncation.
 */
import { z } from "zod";
import { type AggregationSettings, aggregationSettings, checkAggregation } from "./aggregation.ts";
import { checkImportance, type ImportanceSettings, importanceSettings } from "./importance.ts";
import { checkKl, klOf, klScaled, type KlSettings, klSettings } from "./kl.ts";
import { type Expr, type LossInputs, tokenMean } from "../language/mod.ts";
import { truncationSettings } from "./truncation.ts";

/** Setting of the entropy bonus. */
export const entropySettings = {
  entropy_coef: z.number().min(0).default(0).describe(
    "Weight of the next-token entropy, which the loss rewards; 0: not computed.",
  ),
};

/** Defaults of the settings. `kl_places`: where the KL may be. */
export type FirstTerms =
  & Pick<AggregationSettings, "aggregation">
  & Partial<Pick<KlSettings, "kl_coef" | "kl_in" | "kl_estimator">>
  & { kl_places?: readonly KlSettings["kl_in"][] };

/** The settings of all terms, with the algorithm's defaults. */
export function termSettings({ aggregation, ...kl }: FirstTerms): TermShape {
  return {
    ...aggregationSettings(aggregation),
    ...klSettings(kl),
    ...entropySettings,
    ...importanceSettings,
    ...truncationSettings,
  };
}
/** @internal */
type TermShape =
  & ReturnType<typeof aggregationSettings>
  & ReturnType<typeof klSettings>
  & typeof entropySettings
  & typeof importanceSettings
  & typeof truncationSettings;
/** What {@linkcode checkTerms} reads. */
export type TermSettings = z.output<z.ZodObject<TermShape>>;
/** What the terms of a loss read; an algorithm may have no importance correction. */
export type LossSettings =
  & AggregationSettings
  & KlSettings
  & { entropy_coef: number }
  & (ImportanceSettings | { importance?: undefined });

/** Settings of an algorithm that divides by a group's standard deviation. */
export const deviationSettings = {
  std_epsilon: z.number().min(0).default(1e-6).describe("Added to a group's standard deviation."),
  ...klScaled,
};

/** Refuses settings that conflict. */
export function checkTerms(c: TermSettings, ctx: z.RefinementCtx): void {
  checkAggregation(c, ctx);
  checkKl(c, ctx);
  checkImportance(c, ctx);
}

/**
 * Settings that reach every term and every aggregation, for the property tests of one algorithm.
 */
export const termExamples = [
  { kl_coef: 0.04 },
  { kl_coef: 0.04, kl_estimator: "k2", entropy_coef: 0.01 },
  { kl_coef: 0.04, kl_estimator: "k3_k2", kl_target: 0.1, aggregation: "token_mean" },
  { kl_coef: 0.04, kl_estimator: "k3_weighted", aggregation: "group_mean" },
  {
    kl_coef: 0.04,
    kl_in: "reward",
    kl_scaled: true,
    importance: "token_truncate",
    importance_low: 0.9,
  },
  { kl_coef: 0.04, kl_in: "advantage", kl_estimator: "k1" },
  { importance: "token_truncate", importance_high: null },
  { importance: "token_mask", importance_low: 0.9, importance_high: 1.1 },
  { importance: "sequence_truncate", aggregation: "sequence_mean_token_sum", loss_denominator: 8 },
  {
    importance: "sequence_mask",
    importance_high: 1.1,
    aggregation: "token_sum",
    loss_denominator: 64,
  },
  { importance: "geometric_mask", importance_low: 0.9, importance_high: null },
] as const;

/** Metrics of the terms that are on: the mean over tokens of KL, entropy and importance weight. */
export function termMetrics(
  x: LossInputs,
  c: KlSettings & { entropy_coef: number; importance?: string },
): Record<string, Expr<"step">> {
  const kl = klOf(x, c);
  return {
    ...(kl === null ? {} : { "policy/kl_ref": tokenMean(kl) }),
    ...(c.entropy_coef === 0 ? {} : { "policy/entropy": tokenMean(x.entropy) }),
    ...((c.importance ?? "none") === "none"
      ? {}
      : { "policy/importance_weight": tokenMean(x.old_logp.sub(x.behaviour_logp).exp()) }),
  };
}
