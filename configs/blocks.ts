import { z } from "zod";
import { beforeItWas, chatSettings, mayChange, SourceConfig } from "../data/mod.ts";

export const ModelConfig = z.strictObject({
  path: z.string().min(1).describe("A Hugging Face model directory: config.json, tokenizer and safetensors."),
  ...chatSettings,
});

const /** @internal */ recipeConfigSchema = z.strictObject({
  recipe: z.enum(["tiny_qwen", "tiny_qwen_untied"]).default("tiny_qwen").describe("Which small model to make."),
  seed: z.int().nonnegative().default(0).describe("Seed of its random weights."),
});
/** A model that is made on the spot instead of read. */
export type RecipeConfig = z.infer<typeof recipeConfigSchema>;
/** Schema of {@linkcode RecipeConfig}. */
export const RecipeConfig: typeof recipeConfigSchema = recipeConfigSchema;

/** A model that is read, or made on the spot. */
export const ModelOrRecipe = z.strictObject({
  path: ModelConfig.shape.path.optional(),
  recipe: RecipeConfig.shape.recipe.unwrap().optional().describe("A small model that is made on the spot instead."),
  seed: RecipeConfig.shape.seed,
  ...chatSettings,
});
export type ModelOrRecipe = z.infer<typeof ModelOrRecipe>;

const EVAL =
  "Rows to evaluate on, in file order. Several files are several results, unless evaluate.files says otherwise.";

/** How long prompts may be. Checked with the model's tokenizer before anything is generated. */
const promptBounds = {
  prompt_tokens_max: z.int().positive().nullable().default(null).describe(
    "Tokens that a prompt may have; null: what the model takes (a completion needs room for one token).",
  ),
  on_long_prompt: z.enum(["error", "drop", "truncate_left", "unchecked"]).default("error")
    .register(beforeItWas, { value: "unchecked" }).describe(
      "What a longer one does. error: the run stops before it generates anything. drop: its row is left out, and counted. " +
        "truncate_left: the model sees its last tokens. unchecked: it fails the round that draws it.",
    ),
};

const /** @internal */ trainingDataSchema = z.strictObject({
  train: z.array(SourceConfig).min(1).describe("Rows to train on; every epoch is a new order of all of them."),
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

/** What a KL is taken to; read where the algorithm has one. */
export const ReferenceConfig = z.strictObject({
  path: z.string().min(1).nullable().default(null).describe(
    "A model directory of the policy's architecture and tokenizer; null: the policy that the run starts from.",
  ),
  refresh_rounds: z.int().positive().nullable().default(null).describe(
    "After every so many rounds the reference becomes that round's policy; null: never.",
  ),
  offload: z.boolean().default(false).describe("Keep it in the CPU's memory between two uses."),
});
export type ReferenceConfig = z.infer<typeof ReferenceConfig>;

/** How an evaluation judges what its rewards say. */
export const judging = {
  right_at: z.number().nullable().default(null).describe(
    "From which score of the first reward on a sample is right; null: the first reward that says what is right decides.",
  ).register(beforeItWas, { value: 1 }),
  failed_fraction_max: z.number().min(0).max(1).default(0.1).describe(
    "The run fails once the grader failed on more than this share of an evaluation's samples.",
  ).register(beforeItWas, { value: 1 }).register(mayChange, { read_by: "stages" }),
};

const files = z.enum(["apart", "together"]).default("apart").describe(
  "Whether each file of data.eval has a result of its own, called by its `name` or else its file name, or all have one.",
).register(beforeItWas, { value: "together" });

/** Evaluation of one policy. Training evaluates the one it starts from and the one it ends with. */
export const EvaluationConfig = z.strictObject({
  problems: z.int().positive().nullable().default(null).describe("Only the first problems of each result; null: all."),
  samples_per_prompt: z.int().positive().default(1).describe(
    "Samples per problem: avg@k, and pass@k for every k up to it.",
  ),
  greedy: z.boolean().default(true).describe("Also the accuracy of the most likely completion."),
  files,
  ...judging,
});
export type EvaluationConfig = z.infer<typeof EvaluationConfig>;

export const CheckpointsConfig = z.strictObject({
  every_rounds: z.int().positive().default(10).describe("A checkpoint after every so many rounds, and after the last."),
  keep_last: z.int().positive().default(2).describe("Older checkpoints are deleted, unless something still needs one."),
  keep_every: z.int().positive().nullable().default(null).describe(
    "Checkpoints of every n-th round are never deleted; a multiple of every_rounds. null: none.",
  ),
  keep_best: z.strictObject({
    metric: z.string().min(1).describe("A metric of each round: reward/mean, policy/loss, or one that the loss gives."),
    mode: z.enum(["max", "min"]).default("max").describe("Whether the highest or the lowest is best."),
    count: z.int().positive().default(1).describe("How many are kept."),
  }).nullable().default(null).describe("The checkpoints with the best value of a metric are kept. null: none for it."),
}).register(mayChange, { read_by: "stages" });
export type CheckpointsConfig = z.infer<typeof CheckpointsConfig>;

export const RecoveryConfig = z.strictObject({
  allow_replan: z.boolean().default(true).describe(
    "Whether running out of device memory may be answered by smaller micro-batches: from there on the same gradient to " +
      "rounding, not to the bit. false: the run stops with a sentence.",
  ),
}).register(mayChange, { read_by: "workers" });
export type RecoveryConfig = z.infer<typeof RecoveryConfig>;

/** Evaluation on pairs that were held out: how often, and by how much, the better completion is preferred. */
export const PairEvaluationConfig = z.strictObject({
  pairs: z.int().positive().nullable().default(null).describe(
    "Only the first pairs of each result; null: all. Of a task: 128.",
  ),
  files,
});
export type PairEvaluationConfig = z.infer<typeof PairEvaluationConfig>;
