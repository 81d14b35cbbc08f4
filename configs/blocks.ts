import { z } from "zod";
import {
  chatSettings,
  CurriculumConfig,
  ROW_FACTS,
  setting,
  type SettingFacts,
  SourceConfig,
  TrainingSource,
} from "../data/mod.ts";
import { ModelOpening } from "../workers/mod.ts";
import {
  EvaluationSetConfig,
  everyRounds,
  MEASURED,
  PairSetConfig,
} from "./evaluation_set_config.ts";

/** Of every block that says what a run starts from. */
const START: SettingFacts = {
  numerics: false,
  fork: { fixed: "start", why: "every version of the prefix descends from it" },
  resume: "refused",
};

export const ModelConfig = z.strictObject({
  path: z.string().min(1).describe(
    "A Hugging Face model directory (config.json, tokenizer and safetensors), or a model of the " +
      "hub: OWNER/NAME or OWNER/NAME@REVISION.",
  ),
  ...ModelOpening.shape,
  ...chatSettings,
}).register(setting, START);

const /** @internal */ recipeConfigSchema = z.strictObject({
  recipe: z.enum(["tiny_qwen", "tiny_qwen_untied"]).default("tiny_qwen").describe(
    "The small model to create.",
  ),
  seed: z.int().nonnegative().default(0).describe("Seed of its random weights."),
}).register(setting, START);
/** A model that is created instead of read. */
export type RecipeConfig = z.infer<typeof recipeConfigSchema>;
/** Schema of {@linkcode RecipeConfig}. */
export const RecipeConfig: typeof recipeConfigSchema = recipeConfigSchema;

/** A model that is read, or created. */
export const ModelOrRecipe = z.strictObject({
  path: ModelConfig.shape.path.optional().describe(ModelConfig.shape.path.description!),
  recipe: RecipeConfig.shape.recipe.unwrap().optional().describe(
    "A small model that is created when the run starts, instead of a path.",
  ),
  seed: RecipeConfig.shape.seed,
  ...ModelOpening.shape,
  ...chatSettings,
}).register(setting, START);
export type ModelOrRecipe = z.infer<typeof ModelOrRecipe>;

const EVAL = "Rows to evaluate on, in file order. Several files give several results, unless " +
  "evaluate.files says otherwise.";

/** How long prompts may be. Checked with the model's tokenizer before anything is generated. */
const promptBounds = {
  prompt_tokens_max: z.int().positive().nullable().default(null).describe(
    "Maximum tokens per prompt; null: the model's limit minus one token for the completion.",
  ).register(setting, { unit: "tokens" }),
  on_long_prompt: z.enum(["error", "drop", "truncate_left", "unchecked"]).default("error").describe(
    "What to do with a longer prompt. error: stop before generating anything. drop: skip " +
      "its row, and count it. " +
      "truncate_left: keep its last tokens. unchecked: fail the round that draws it.",
  ),
};

const /** @internal */ trainingDataSchema = z.strictObject({
  train: z.array(TrainingSource).min(1).describe("Rows to train on, reshuffled for every epoch."),
  eval: z.array(SourceConfig).default([]).describe(EVAL),
  curriculum: CurriculumConfig.nullable().default(null).describe(
    "Weights that follow the recent reward of each source; null: none.",
  ).register(setting, ROW_FACTS),
  ...promptBounds,
}).register(setting, ROW_FACTS);
/** Where the rows of training and of evaluation come from. */
export type TrainingData = z.infer<typeof trainingDataSchema>;
/** Schema of {@linkcode TrainingData}. */
export const TrainingData: typeof trainingDataSchema = trainingDataSchema;
/** Rows of supervised training. */
export const SupervisedData = trainingDataSchema.extend({
  teach: z.enum(["all", "last"]).default("all").describe(
    "Which of the assistant's turns in `messages` are trained: all of them, or the last.",
  ).register(setting, { ...ROW_FACTS }),
}).register(setting, ROW_FACTS);
export const EvaluationData = z.strictObject({
  eval: z.array(SourceConfig).default([]).describe(EVAL),
  ...promptBounds,
}).register(setting, ROW_FACTS);

/** The reference of a KL; read only if the algorithm has one. */
export const ReferenceConfig = z.strictObject({
  path: z.string().min(1).nullable().default(null).describe(
    "A model directory or a model of the hub, with the policy's architecture and tokenizer; " +
      "null: the policy the run starts from.",
  ),
  refresh_rounds: z.int().positive().nullable().default(null).describe(
    "Rounds between updates of the reference to the current policy; null: never.",
  ).register(setting, { unit: "rounds" }),
  offload: z.boolean().default(false).describe("Keep it in CPU memory between uses."),
}).register(setting, { numerics: false, fork: "free", resume: "refused" });
export type ReferenceConfig = z.infer<typeof ReferenceConfig>;

/** How an evaluation judges its rewards. */
export const judging = {
  right_at: z.number().nullable().default(null).describe(
    "Score of the first reward from which a sample counts as right; null: decided by the " +
      "first reward that defines right.",
  ),
  failed_fraction_max: z.number().min(0).max(1).default(0.1).describe(
    "The run fails if the grader fails on more than this share of an evaluation's samples.",
  ).register(setting, { unit: "fraction", resume: "stages" }),
};

const files = z.enum(["apart", "together"]).default("apart").describe(
  "apart: one result per file of data.eval, called by its `name` or else its file name. " +
    "together: one result for all.",
);

/** Evaluation of one policy. Training evaluates its first and its last policy. */
export const EvaluationConfig = z.strictObject({
  problems: z.int().positive().nullable().default(null).describe(
    "Only the first problems of each result; null: all.",
  ).register(setting, { unit: "problems", rows: true }),
  samples_per_prompt: z.int().positive().default(1).describe(
    "Samples per problem: avg@k, and pass@k and pass^k for every k up to it.",
  ).register(setting, { unit: "samples" }),
  greedy: z.boolean().default(true).describe("Also measure greedy accuracy."),
  majority: z.boolean().default(true).describe(
    "With several samples per problem, also maj@k: whether the most common answer is right, if " +
      "the reward that defines right reads answers.",
  ).register(setting, { ...MEASURED }),
  files,
  ...judging,
  sets: z.array(EvaluationSetConfig).default([]).describe(
    "Further problems, each set with its own result.",
  ).register(setting, MEASURED),
}).register(setting, MEASURED);
export type EvaluationConfig = z.infer<typeof EvaluationConfig>;

/** Evaluation beside training: before, between and after the rounds. */
export const TrainingEvaluation = EvaluationConfig.extend({ every_rounds: everyRounds })
  .register(setting, MEASURED);
export type TrainingEvaluation = z.infer<typeof TrainingEvaluation>;

/** Evaluation beside supervised training. */
export const SupervisedEvaluation = TrainingEvaluation.extend({
  loss: z.boolean().default(false).describe(
    "Also the loss on the completions of the evaluated rows. Without a reward, only that.",
  ).register(setting, MEASURED),
}).register(setting, MEASURED);
export type SupervisedEvaluation = z.infer<typeof SupervisedEvaluation>;

export const CheckpointsConfig = z.strictObject({
  every_rounds: z.int().positive().default(10).describe(
    "Rounds between checkpoints; the last round always has one.",
  ).register(setting, { unit: "rounds" }),
  keep_last: z.int().positive().default(2).describe(
    "Newest checkpoints to keep; older ones are deleted unless still needed.",
  ).register(setting, { unit: "checkpoints" }),
  keep_every: z.int().positive().nullable().default(null).describe(
    "Never delete the checkpoint of every n-th round; a multiple of every_rounds. null: none.",
  ).register(setting, { unit: "rounds" }),
  keep_weights_every: z.int().positive().nullable().default(null).describe(
    "Keep the weights of every n-th round's checkpoint when it is deleted, without the training " +
      "state; a multiple of every_rounds. null: none.",
  ).register(setting, { unit: "rounds" }),
  keep_best: z.strictObject({
    metric: z.string().min(1).describe(
      "A metric of each round: reward/mean, policy/loss, or one from the loss.",
    ),
    mode: z.enum(["max", "min"]).default("max").describe(
      "Whether the highest or the lowest is best.",
    ),
    count: z.int().positive().default(1).describe("How many to keep.").register(setting, {
      unit: "checkpoints",
    }),
  }).nullable().default(null).describe(
    "Keep the checkpoints with the best value of a metric. null: none.",
  ),
}).register(setting, { numerics: false, fork: "free", resume: "stages" });
export type CheckpointsConfig = z.infer<typeof CheckpointsConfig>;

export const RecoveryConfig = z.strictObject({
  allow_replan: z.boolean().default(true).describe(
    "Whether to continue with smaller micro-batches after running out of device memory: " +
      "from there on the gradient is the same to " +
      "rounding, not bit-identical. false: the run stops with an error.",
  ),
}).register(setting, { numerics: false, fork: "free", resume: "workers" });
export type RecoveryConfig = z.infer<typeof RecoveryConfig>;

/** Evaluation on held-out pairs: how often, and by how much, the better completion is preferred. */
export const PairEvaluationConfig = z.strictObject({
  pairs: z.int().positive().nullable().default(null).describe(
    "Only the first pairs of each result; null: all. Of a task: 128.",
  ).register(setting, { unit: "pairs" }),
  files,
  sets: z.array(PairSetConfig).default([]).describe(
    "Further held-out pairs, each set with its own result.",
  ).register(setting, MEASURED),
  every_rounds: everyRounds,
}).register(setting, {
  numerics: false,
  fork: { fixed: "round_1", why: "the start was evaluated on them", start: "free" },
  resume: "refused",
});
export type PairEvaluationConfig = z.infer<typeof PairEvaluationConfig>;
