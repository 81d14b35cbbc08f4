import { defineResource, type DirectoryOwner } from "../engine/mod.ts";
import type { RowTable } from "../data/mod.ts";
import type { PolicySampler, RewardScorer } from "../rollouts/mod.ts";
import type { PolicyTrainer } from "../workers/mod.ts";

/** The rows of a run by split (`train`, `eval`, ...), opened once. */
export type RowTables = Record<string, RowTable>;

/** Where a run keeps its files. `home`: the tree that they all lie in; `owner`: what their directories say. */
export type RunPaths = {
  home: string;
  owner: DirectoryOwner | null;
  run: string;
  checkpoints: string;
  publications: string;
};

/** The policy's trainer. */
export const Trainer = defineResource<PolicyTrainer>("trainer");
/** The value model's trainer; only where the algorithm has a value model. */
export const Critic = defineResource<PolicyTrainer>("critic");
/** All trainers of the run. */
export const Trainers = defineResource<readonly PolicyTrainer[]>("trainers");
/** The samplers of the run. */
export const Sampler = defineResource<PolicySampler>("sampler");
/** Scores samples. */
export const Rewards = defineResource<RewardScorer>("rewards");
/** The rows of the run's splits. */
export const Rows = defineResource<RowTables>("rows");
/** Where the run's files lie. */
export const Paths = defineResource<RunPaths>("paths");
