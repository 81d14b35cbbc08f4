import { defineResource } from "../engine/mod.ts";
import type { RowTable } from "../data/mod.ts";
import type { PolicySampler, RewardScorer } from "../rollouts/mod.ts";
import type { PolicyTrainer } from "../workers/mod.ts";

/** The rows of a run by split (`train`, `eval`, ...), opened once. */
export type RowTables = Record<string, RowTable>;

/** Where a run keeps its files. */
export type RunPaths = { run: string; checkpoints: string; publications: string };

export const Trainer = defineResource<PolicyTrainer>("trainer");
/** The value model's trainer; only where the algorithm has a value model. */
export const Critic = defineResource<PolicyTrainer>("critic");
/** All trainers of the run. */
export const Trainers = defineResource<readonly PolicyTrainer[]>("trainers");
export const Sampler = defineResource<PolicySampler>("sampler");
export const Rewards = defineResource<RewardScorer>("rewards");
export const Rows = defineResource<RowTables>("rows");
export const Paths = defineResource<RunPaths>("paths");
