import type { OnlineConfig } from "../configs/mod.ts";
import type { Opened } from "./open_algorithm.ts";
import type { RowsConfig } from "./open_rows.ts";

/** What the rounds of online RL read of a configuration; the quickstart makes one from its own. */
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
  & RowsConfig
  & {
    /** Where an algorithm in Python is opened already. */
    opened?: Opened;
  };
