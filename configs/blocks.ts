import { z } from "zod";
import { beforeItWas, chatSettings, mayChange, SourceConfig } from "../data/mod.ts";

export const ModelConfig = z.strictObject({
  path: z.string().min(1).describe("A Hugging Face model directory: config.json, tokenizer and safetensors."),
  ...chatSettings,
});

const /** @internal */ recipeConfigSchema = z.strictObject({
  recipe: z.enum(["tiny_qwen", "tiny_qwen_untied"]).default("tiny_qwen").describe("The small model to create."),
  seed: z.int().nonnegative().default(0).describe("Seed of its random weights."),
});
/** A model that is created instead of read. */
export type RecipeConfig = z.infer<typeof recipeConfigSchema>;
/** Schema of {@linkcode RecipeConfig}. */
export const RecipeConfig: typeof recipeConfigSchema = recipeConfigSchema;

/** A model that is read, or created. */
export const ModelOrRecipe = z.strictObject({
  path: ModelConfig.shape.path.optional(),
  recipe: RecipeConfig.shape.recipe.unwrap().optional().describe(
    "A small model, created when the run starts, in place of a path.",
  ),
  seed: RecipeConfig.shape.seed,
  ...chatSettings,
});
export type ModelOrRecipe = z.infer<typeof ModelOrRecipe>;

const EVAL =
  "Rows to evaluate on, in file order. Several files are several results, unless evaluate.files says otherwise.";

/** How long prompts may be. Checked with the model's tokenizer before anything is generated. */
const promptBounds = {
  prompt_tokens_max: z.int().positive().nullable().default(null).describe(
    "Maximum tokens per prompt; null: the model's limit, less one token for the completion.",
  ),
  on_long_prompt: z.enum(["error", "drop", "truncate_left", "unchecked"]).default("error")
    .register(beforeItWas, { value: "unchecked" }).describe(
      "What to do with a longer prompt. error: stop before generating anything. drop: skip its row, and count it. " +
        "truncate_left: keep its last tokens. unchecked: fail the round that draws it.",
    ),
};

const /** @internal */ trainingDataSchema = z.strictObject({
  train: z.array(SourceConfig).min(1).describe("Rows to train on, reshuffled for every epoch."),
  eval: z.array(SourceConfig).default([]).describe(EVAL),
  ...promptBounds,
});
/** Where the rows of training and of evaluation come from. */
export type TrainingData = z.infer<typeof trainingDataSchema>;
/** Schema of {@linkcode TrainingData}. */
export const TrainingData: typeof trainingDataSchema = trainingDataSchema;
export const EvaluationData = z.strictObject({
  eval: z.array(SourceConfig).min(1).describe(EVAL),
  ...promptBounds,
});

/** The reference of a KL; read only if the algorithm has one. */
export const ReferenceConfig = z.strictObject({
  path: z.string().min(1).nullable().default(null).describe(
    "A model directory with the policy's architecture and tokenizer; null: the policy the run starts from.",
  ),
  refresh_rounds: z.int().positive().nullable().default(null).describe(
    "Rounds between updates of the reference to the current policy; null: never.",
  ),
  offload: z.boolean().default(false).describe("Keep it in CPU memory between uses."),
});
export type ReferenceConfig = z.infer<typeof ReferenceConfig>;

/** How an evaluation judges its rewards. */
export const judging = {
  right_at: z.number().nullable().default(null).describe(
    "Score of the first reward from which a sample counts as right; null: decided by the first reward that defines right.",
  ).register(beforeItWas, { value: 1 }),
  failed_fraction_max: z.number().min(0).max(1).default(0.1).describe(
    "The run fails if the grader fails on more than this share of an evaluation's samples.",
  ).register(beforeItWas, { value: 1 }).register(mayChange, { read_by: "stages" }),
};

const files = z.enum(["apart", "together"]).default("apart").describe(
  "apart: one result per file of data.eval, called by its `name` or else its file name. together: one result for all.",
).register(beforeItWas, { value: "together" });

/** Evaluation of one policy. Training evaluates its first and its last policy. */
export const EvaluationConfig = z.strictObject({
  problems: z.int().positive().nullable().default(null).describe("Only the first problems of each result; null: all."),
  samples_per_prompt: z.int().positive().default(1).describe(
    "Samples per problem: avg@k, and pass@k for every k up to it.",
  ),
  greedy: z.boolean().default(true).describe("Also measure greedy accuracy."),
  files,
  ...judging,
});
export type EvaluationConfig = z.infer<typeof EvaluationConfig>;

export const CheckpointsConfig = z.strictObject({
  every_rounds: z.int().positive().default(10).describe("Rounds between checkpoints; the last round always has one."),
  keep_last: z.int().positive().default(2).describe(
    "Newest checkpoints to keep; older ones are deleted unless still needed.",
  ),
  keep_every: z.int().positive().nullable().default(null).describe(
    "Never delete the checkpoint of every n-th round; a multiple of every_rounds. null: none.",
  ),
  keep_best: z.strictObject({
    metric: z.string().min(1).describe("A metric of each round: reward/mean, policy/loss, or one from the loss."),
    mode: z.enum(["max", "min"]).default("max").describe("Whether the highest or the lowest is best."),
    count: z.int().positive().default(1).describe("How many to keep."),
  }).nullable().default(null).describe("Keep the checkpoints with the best value of a metric. null: none."),
}).register(mayChange, { read_by: "stages" });
export type CheckpointsConfig = z.infer<typeof CheckpointsConfig>;

export const RecoveryConfig = z.strictObject({
  allow_replan: z.boolean().default(true).describe(
    "Whether to continue with smaller micro-batches after running out of device memory: from there on the gradient is the same to " +
      "rounding, not bit-identical. false: the run stops with an error.",
  ),
}).register(mayChange, { read_by: "workers" });
export type RecoveryConfig = z.infer<typeof RecoveryConfig>;

/** Evaluation on held-out pairs: how often, and by how much, the better completion is preferred. */
export const PairEvaluationConfig = z.strictObject({
  pairs: z.int().positive().nullable().default(null).describe(
    "Only the first pairs of each result; null: all. Of a task: 128.",
  ),
  files,
});
export type PairEvaluationConfig = z.infer<typeof PairEvaluationConfig>;
