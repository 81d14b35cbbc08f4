import { defineResource, type DirectoryOwner, type Resource } from "../engine/mod.ts";
import type { RowTable } from "../data/mod.ts";
import type { PolicySampler, RewardScorer } from "../rollouts/mod.ts";
import type { PolicyTrainer } from "../workers/mod.ts";

/** The rows of a run by split (`train`, `eval`, ...), opened once. */
export type RowTables = Record<string, RowTable>;

/**
 * Where a run keeps its files. `home`: their common root; `owner`: the owner named in the
 * directories.
 */
export type RunPaths = {
  home: string;
  owner: DirectoryOwner | null;
  run: string;
  checkpoints: string;
  publications: string;
};

/** The policy's trainer. */
export const Trainer: Resource<PolicyTrainer> = defineResource("trainer");
/** The value model's trainer, if the algorithm has a value model. */
export const Critic: Resource<PolicyTrainer> = defineResource("critic");
/** All trainers of the run. */
export const Trainers: Resource<readonly PolicyTrainer[]> = defineResource("trainers");
/** The samplers of the run. */
export const Sampler: Resource<PolicySampler> = defineResource("sampler");
/** Scores samples. */
export const Rewards: Resource<RewardScorer> = defineResource("rewards");
/** The rows of the run's splits. */
export const Rows: Resource<RowTables> = defineResource("rows");
/** Where the run's files are. */
export const Paths: Resource<RunPaths> = defineResource("paths");
