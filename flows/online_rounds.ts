import type { OnlineConfig } from "../configs/mod.ts";
import type { RoundEvaluation } from "./evaluate_rounds.ts";
import type { Opened } from "./open_algorithm.ts";
import type { RowsConfig } from "./open_rows.ts";
import type { Stopping } from "./stop_early.ts";

/**
 * What the rounds of online RL read from a configuration; the quickstart derives one from its own.
 */
export type OnlineRounds =
  & Pick<
    OnlineConfig,
    | "seed"
    | "rounds"
    | "prompts_per_round"
    | "samples_per_prompt"
    | "lag"
    | "algorithm"
    | "reward"
    | "sampler"
    | "trainer"
    | "value_model"
    | "reference"
    | "rollouts"
    | "checkpoints"
  >
  & Partial<Pick<OnlineConfig, "reward_shaping">>
  & RowsConfig
  & Stopping
  & {
    /** If an algorithm in Python is already open. */
    opened?: Opened;
    /** What evaluates a round's policy; absent: rounds are not evaluated. */
    evaluated?: RoundEvaluation;
  };
