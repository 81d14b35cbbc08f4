import type { AlgorithmChoice } from "../../algs/mod.ts";
import type { CurriculumConfig, Optimizer, SourceConfig, TrainingSource } from "../../data/mod.ts";
import type { RewardConfig, RewardShaping } from "../../rewards/mod.ts";
import type { RolloutsConfig } from "../../rollouts/mod.ts";
import type { SamplerConfig, TrainerConfig, ValueModelConfig } from "../../workers/mod.ts";
import type { CheckpointsConfig, ModelOrRecipe, ReferenceConfig } from "../blocks.ts";
import type { StopConfig } from "../evaluation_set_config.ts";
import type { Evaluated } from "../evaluation_sets.ts";
import type { LengthLimits } from "../prepare_config.ts";
import type { Flow, PreferenceConfig, QuickstartConfig } from "../schema.ts";

/**
 * What rules see: the blocks of a configuration that are valid by themselves. A rule skips broken
 * blocks.
 */
export type Blocks = {
  flow: Flow;
  trainer?: Omit<TrainerConfig, "optimizer"> & { optimizer?: Optimizer };
  sampler?: SamplerConfig;
  rollouts?: RolloutsConfig;
  algorithm?: AlgorithmChoice;
  reference?: ReferenceConfig;
  value_model?: ValueModelConfig;
  reward?: RewardConfig[];
  reward_shaping?: RewardShaping | null;
  data?: {
    train?: TrainingSource[];
    eval: SourceConfig[];
    on_long_prompt?: string;
    curriculum?: CurriculumConfig | null;
  };
  evaluate?:
    | NonNullable<Evaluated["evaluate"]> & {
      samples_per_prompt?: number;
      every_rounds?: number | null;
      greedy?: boolean;
      loss?: boolean;
      majority?: boolean;
      right_at?: number | null;
      problems?: number | null;
      pairs?: number | null;
    }
    | null;
  prompts_per_round?: number;
  samples_per_prompt?: number;
  rows_per_round?: number;
  pairs_per_round?: number;
  lag?: number;
  warmup?: QuickstartConfig["warmup"] | null;
  online?: QuickstartConfig["online"];
  task?: QuickstartConfig["task"] | PreferenceConfig["task"];
  model?: Partial<ModelOrRecipe>;
  start_from?: string;
  checkpoints?: CheckpointsConfig;
  stop?: StopConfig | null;
  lengths?: LengthLimits;
  tokenizer?: object | null;
};
