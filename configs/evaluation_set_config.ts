import { z } from "zod";
import { setting, type SettingFacts, SourceConfig } from "../data/mod.ts";
import { RewardConfig } from "../rewards/mod.ts";

/** Of what an evaluation measures: training does not depend on it. */
export const MEASURED: SettingFacts = {
  numerics: false,
  fork: "free",
  resume: "refused",
};
const ROWS: SettingFacts = { ...MEASURED, rows: true };

/** Of every set. */
const named = {
  name: z.string().min(1).describe(
    "What its results and metrics are called: NAME/round_4_greedy, eval/NAME/avg_at_1.",
  ).register(setting, MEASURED),
  data: z.array(SourceConfig).min(1).describe("Its rows, in file order.").register(setting, ROWS),
};

const orElse = "null: as evaluate says.";
const orSampler = "null: as sampler says.";

/** How completions of a set are sampled, where that differs from training. */
const sampling = z.strictObject({
  temperature: z.number().nonnegative().nullable().default(null).describe(
    `Logits are divided by it; 0 is greedy. ${orSampler}`,
  ).register(setting, MEASURED),
  top_p: z.number().positive().max(1).nullable().default(null).describe(
    `Sample from the smallest set of tokens with this total probability. ${orSampler}`,
  ).register(setting, MEASURED),
  top_k: z.int().min(-1).nullable().default(null).describe(
    `Tokens to sample from; -1: the whole vocabulary. ${orSampler}`,
  ).register(setting, { ...MEASURED, unit: "tokens" }),
  tokens_max: z.int().positive().nullable().default(null).describe(
    `Maximum tokens per completion. ${orSampler}`,
  ).register(setting, { ...MEASURED, unit: "tokens" }),
});

/** Problems with a separate result, and what is special about them. */
export const EvaluationSetConfig = z.strictObject({
  ...named,
  problems: z.int().positive().nullable().default(null).describe(
    `Only its first problems. ${orElse}`,
  ).register(setting, { ...ROWS, unit: "problems" }),
  samples_per_prompt: z.int().positive().nullable().default(null).describe(
    `Samples per problem. ${orElse}`,
  ).register(setting, { ...MEASURED, unit: "samples" }),
  greedy: z.boolean().nullable().default(null).describe(
    `Also measure greedy accuracy. ${orElse}`,
  ).register(setting, MEASURED),
  sampling: sampling.prefault({}).describe("How its completions are sampled.").register(
    setting,
    MEASURED,
  ),
  reward: z.array(RewardConfig).min(1).nullable().default(null).describe(
    "What scores its samples. Short form: `gsm8k`. null: the run's reward.",
  ).register(setting, MEASURED),
}).register(setting, MEASURED);
export type EvaluationSetConfig = z.infer<typeof EvaluationSetConfig>;

/** Held-out pairs with a separate result. */
export const PairSetConfig = z.strictObject({
  ...named,
  pairs: z.int().positive().nullable().default(null).describe(`Only its first pairs. ${orElse}`)
    .register(setting, { ...ROWS, unit: "pairs" }),
}).register(setting, MEASURED);
export type PairSetConfig = z.infer<typeof PairSetConfig>;

export const everyRounds = z.int().positive().nullable().default(null).describe(
  "Rounds between evaluations during training. The last round is always evaluated, instead of " +
    "the policy after it. null: only before the first round and after the last.",
).register(setting, { ...MEASURED, unit: "rounds" });

/** What ends training before its last round. */
export const StopConfig = z.strictObject({
  metric: z.string().min(1).describe(
    "A metric of the evaluations between rounds, e.g. eval/gsm8k/pass_at_1.",
  ).register(setting, MEASURED),
  mode: z.enum(["max", "min"]).default("max").describe("Whether higher or lower is better.")
    .register(setting, MEASURED),
  patience_rounds: z.int().positive().describe(
    "Training stops once this many rounds have passed without a better value.",
  ).register(setting, { ...MEASURED, unit: "rounds" }),
  min_delta: z.number().nonnegative().default(0).describe(
    "A value is better only if it differs from the best by more than this.",
  ).register(setting, MEASURED),
}).register(setting, MEASURED);
export type StopConfig = z.infer<typeof StopConfig>;
