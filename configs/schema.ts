import { z } from "zod";
import { DigitsPreferences, DigitsTask, Optimizer } from "../data/mod.ts";
import { setting, type SettingFacts } from "../data/mod.ts";
import { RewardConfig, RewardShaping } from "../rewards/mod.ts";
import { RolloutsConfig } from "../rollouts/mod.ts";
import { OnlineAlgorithm, PreferenceAlgorithm, SupervisedAlgorithm } from "../algs/mod.ts";
import {
  CheckpointsConfig,
  EvaluationConfig,
  EvaluationData,
  judging,
  ModelConfig,
  ModelOrRecipe,
  PairEvaluationConfig,
  RecipeConfig,
  RecoveryConfig,
  ReferenceConfig,
  SupervisedData,
  SupervisedEvaluation,
  TrainingData,
  TrainingEvaluation,
} from "./blocks.ts";
import { StopConfig } from "./evaluation_set_config.ts";
import { startFrom } from "./start_from.ts";
import { PREPARE_FIELDS } from "./prepare_config.ts";
import { TrackConfig, TRACKED } from "./track_config.ts";
import { SamplerConfig, TrainerConfig, ValueModelConfig, WorkersConfig } from "../workers/mod.ts";

/** Of a setting that no rule is about. */
const PLAIN: SettingFacts = { numerics: false, fork: "free", resume: "refused" };
/** Of a number that places the next draw. */
const DRAWN: SettingFacts = {
  ...PLAIN,
  fork: { fixed: "round_1", why: "the next draw depends on it" },
};

const rounds = z.int().positive().describe("Number of rounds.").register(setting, {
  ...PLAIN,
  unit: "rounds",
  fork: "rounds",
});
const promptsPerRound = z.int().positive().describe(
  "Prompts drawn in each round; each becomes one group.",
).register(setting, { ...DRAWN, unit: "prompts" });
const samplesPerPrompt = z.int().positive().describe(
  "Completions sampled for each prompt: the size of a group.",
).register(setting, { ...PLAIN, unit: "samples" });
const rowsPerRound = z.int().positive().describe("Rows to train on in each round.").register(
  setting,
  { ...DRAWN, unit: "rows" },
);
const reward = z.array(RewardConfig).describe(
  "What scores samples. Short form: `gsm8k` or `my.py:function`.",
).register(setting, PLAIN);
const rewardShaping = RewardShaping.nullable().default(null).describe(
  "What happens to the sum of a sample's rewards in training; null: nothing.",
).register(setting, PLAIN);
const trainer = TrainerConfig.prefault({}).describe(
  "The worker group that holds the weights and trains them.",
);
const sampler = SamplerConfig.prefault({}).describe(
  "The worker groups that generate, and how tokens are drawn.",
);

/** What algorithms that learn from rewards may need beside the policy. */
const besidePolicy = {
  value_model: ValueModelConfig.prefault({}).describe(
    "The model that predicts rewards, if the algorithm has one.",
  ),
  reference: ReferenceConfig.prefault({}).describe(
    "The policy that the KL is measured against, if the algorithm has one.",
  ),
};

/** Of the setting that chooses the graph. */
const WHICH: SettingFacts = {
  ...PLAIN,
  fork: { fixed: "start", why: "a fork keeps its parent's graph" },
};

const everyFlow = {
  name: z.string().min(1).optional().describe("The run's name; its id is generated.").register(
    setting,
    PLAIN,
  ),
  seed: z.int().nonnegative().default(0).describe("Seed of everything random in the run.").register(
    setting,
    {
      ...PLAIN,
      fork: { fixed: "start", why: "everything random in the prefix came from it" },
    },
  ),
  checkpoints: CheckpointsConfig.prefault({}).describe(
    "How often the whole training state is saved.",
  ),
  workers: WorkersConfig.prefault({}).describe("Worker processes: time limits and addresses."),
  recovery: RecoveryConfig.prefault({}).describe("What may change when something fails."),
  track: TrackConfig.optional().describe(
    "Trackers that receive the run's metrics. Short form: `tensorboard`.",
  ).register(setting, TRACKED),
};

const EVALUATE = "Evaluation before, between and after the rounds; null: none.";
const stop = StopConfig.nullable().default(null).describe(
  "Ends training early if an evaluation's metric no longer improves; null: never.",
).register(setting, PLAIN);

const /** @internal */ onlineConfigSchema = z.strictObject({
  flow: z.literal("online").describe("Sample, score, train; round by round.").register(
    setting,
    WHICH,
  ),
  ...everyFlow,
  rounds,
  prompts_per_round: promptsPerRound,
  samples_per_prompt: samplesPerPrompt,
  lag: z.int().nonnegative().default(0).describe(
    "How many rounds generation may run ahead of training.",
  ).register(setting, { ...PLAIN, unit: "rounds" }),
  model: ModelConfig.describe("The model to start from."),
  start_from: startFrom,
  data: TrainingData.describe("Where prompts come from."),
  algorithm: OnlineAlgorithm.describe("How rewards become a loss. Short form: its name.").register(
    setting,
    PLAIN,
  ),
  reward: reward.min(1),
  reward_shaping: rewardShaping,
  trainer,
  ...besidePolicy,
  sampler,
  rollouts: RolloutsConfig.prefault({}).describe("How prompts become trajectories."),
  evaluate: TrainingEvaluation.nullable().default(null).describe(EVALUATE).register(setting, PLAIN),
  stop,
});
/** Online reinforcement learning. */
export type OnlineConfig = z.infer<typeof onlineConfigSchema>;
/** Schema of {@linkcode OnlineConfig}. */
export const OnlineConfig: typeof onlineConfigSchema = onlineConfigSchema;

const /** @internal */ supervisedConfigSchema = z.strictObject({
  flow: z.literal("supervised").describe("Train on completions.").register(setting, WHICH),
  ...everyFlow,
  rounds,
  rows_per_round: rowsPerRound,
  model: ModelOrRecipe.describe("The model to start from: a path, or a recipe."),
  start_from: startFrom,
  data: SupervisedData.describe("Rows with completions."),
  algorithm: SupervisedAlgorithm.prefault({ name: "sft" }).describe(
    "The loss. Short form: its name.",
  ).register(
    setting,
    PLAIN,
  ),
  trainer,
  reward: reward.default([]),
  sampler,
  evaluate: SupervisedEvaluation.nullable().default(null).describe(EVALUATE).register(
    setting,
    PLAIN,
  ),
  stop,
});
/** Supervised fine-tuning. */
export type SupervisedConfig = z.infer<typeof supervisedConfigSchema>;
/** Schema of {@linkcode SupervisedConfig}. */
export const SupervisedConfig: typeof supervisedConfigSchema = supervisedConfigSchema;

const { checkpoints: _, ...unsaved } = everyFlow;

const /** @internal */ evaluateConfigSchema = z.strictObject({
  flow: z.literal("evaluate").describe("Sample and score; train nothing.").register(setting, WHICH),
  ...unsaved,
  model: ModelConfig.describe("The model to evaluate."),
  data: EvaluationData.prefault({}).describe("Problems to evaluate on."),
  reward: reward.min(1),
  trainer: trainer.describe(
    "The worker group that loads the model and publishes its weights to the samplers.",
  ),
  sampler,
  evaluate: EvaluationConfig.prefault({}).describe("Number of problems and samples."),
});
/** Evaluation only: samples and scores, trains nothing. */
export type EvaluateConfig = z.infer<typeof evaluateConfigSchema>;
/** Schema of {@linkcode EvaluateConfig}. */
export const EvaluateConfig: typeof evaluateConfigSchema = evaluateConfigSchema;

/** Of rows that are made. */
const TASK: SettingFacts = {
  ...PLAIN,
  fork: {
    fixed: "rows",
    why: "the draws of the prefix came from it, and the next draws continue there",
  },
  rows: true,
};

const optimizer = Optimizer.prefault({}).describe("AdamW and its learning rate.");
/** A supervised part before the run's main part. */
const warmup = z.strictObject({ rounds, rows_per_round: rowsPerRound, optimizer }).register(
  setting,
  {
    ...PLAIN,
    fork: { fixed: "after_warmup", why: "the warm-up is part of the prefix" },
    loop: "step",
  },
);

const /** @internal */ quickstartConfigSchema = z.strictObject({
  flow: z.literal("quickstart").describe(
    "A tiny model created from scratch: supervised warm-up, GRPO, evaluation.",
  )
    .register(setting, WHICH),
  ...everyFlow,
  model: RecipeConfig.prefault({}).describe("The model to create."),
  task: DigitsTask.prefault({}).describe("What it learns.").register(setting, TASK),
  warmup: warmup.describe("The supervised part."),
  online: z.strictObject({
    rounds,
    prompts_per_round: promptsPerRound,
    samples_per_prompt: samplesPerPrompt,
    optimizer,
  }).describe("The reinforcement learning part.").register(setting, { ...PLAIN, loop: "round" }),
  algorithm: OnlineAlgorithm.prefault({ name: "grpo" }).describe(
    "How rewards become a loss. Short form: its name.",
  )
    .register(setting, PLAIN),
  reward: reward.min(1).prefault([{ name: "exact_match" }]),
  reward_shaping: rewardShaping,
  trainer: TrainerConfig.omit({ optimizer: true }).prefault({}).describe(
    "The worker group that trains.",
  )
    .register(setting, PLAIN),
  ...besidePolicy,
  sampler,
  rollouts: RolloutsConfig.prefault({}).describe("How prompts become trajectories."),
  evaluate: z.strictObject({
    problems: z.int().positive().default(128).describe(
      "Problems held out from training for evaluation.",
    ).register(setting, { unit: "problems", rows: true }),
    ...judging,
  }).prefault({}).describe("Greedy accuracy after the warm-up and after the last round.").register(
    setting,
    PLAIN,
  ),
});
/** The quickstart: a tiny model created at the start, a supervised warm-up, then rewards. */
export type QuickstartConfig = z.infer<typeof quickstartConfigSchema>;
/** Schema of {@linkcode QuickstartConfig}. */
export const QuickstartConfig: typeof quickstartConfigSchema = quickstartConfigSchema;

const /** @internal */ preferenceConfigSchema = z.strictObject({
  flow: z.literal("preference").describe("Learn which of two completions is better.").register(
    setting,
    WHICH,
  ),
  ...everyFlow,
  rounds,
  pairs_per_round: z.int().positive().describe("Pairs to train on in each round.").register(
    setting,
    { ...DRAWN, unit: "pairs", loop: "round" },
  ),
  model: ModelOrRecipe.describe("The model to start from: a path, or a recipe."),
  start_from: startFrom,
  data: TrainingData.optional().describe("Rows with a prompt, a chosen and a rejected completion."),
  task: DigitsPreferences.optional().describe("Pairs generated by a task, instead of data.")
    .register(setting, TASK),
  warmup: warmup.nullable().default(null).describe(
    "A supervised warm-up on the chosen completions. null: none.",
  ),
  algorithm: PreferenceAlgorithm.prefault({ name: "dpo" }).describe(
    "The loss. Short form: its name.",
  ).register(
    setting,
    PLAIN,
  ),
  trainer,
  reference: ReferenceConfig.pick({ path: true, offload: true }).prefault({}).describe(
    "The model that the policy is compared with, if the algorithm has one.",
  ).register(setting, {
    ...PLAIN,
    fork: { fixed: "round_1", why: "held-out pairs were scored with it", start: "free" },
  }),
  evaluate: PairEvaluationConfig.nullable().default(null).describe(
    "Accuracy and margin on the pairs of data.eval, or of the task, before, between and after " +
      "the rounds; null: none.",
  ),
  stop,
});
/** Preference learning on pairs of completions. */
export type PreferenceConfig = z.infer<typeof preferenceConfigSchema>;
/** Schema of {@linkcode PreferenceConfig}. */
export const PreferenceConfig: typeof preferenceConfigSchema = preferenceConfigSchema;

const { name, seed } = everyFlow;

const /** @internal */ prepareConfigSchema = z.strictObject({
  flow: z.literal("prepare").describe("Prepare data; train nothing.").register(setting, WHICH),
  name,
  seed,
  ...PREPARE_FIELDS,
});
/** Data preparation: files of rows to Parquet, with a card that counts every dropped row. */
export type PrepareConfig = z.infer<typeof prepareConfigSchema>;
/** Schema of {@linkcode PrepareConfig}. */
export const PrepareConfig: typeof prepareConfigSchema = prepareConfigSchema;

/** Every configuration that people run. Each flow has its own fields; `flow` tells which. */
export const /** @internal */ FLOWS = {
  online: OnlineConfig,
  supervised: SupervisedConfig,
  evaluate: EvaluateConfig,
  quickstart: QuickstartConfig,
  preference: PreferenceConfig,
  prepare: PrepareConfig,
};
/** The name of a flow. */
export type Flow = keyof typeof FLOWS;

const /** @internal */ configSchema = z.discriminatedUnion("flow", [
  OnlineConfig,
  SupervisedConfig,
  EvaluateConfig,
  QuickstartConfig,
  PreferenceConfig,
  PrepareConfig,
]);
/** The configuration of any flow; `flow` tells which. */
export type Config = z.infer<typeof configSchema>;
/** Schema of {@linkcode Config}. */
export const Config: typeof configSchema = configSchema;
