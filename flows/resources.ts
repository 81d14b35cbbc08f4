import { defineResource } from "../engine/mod.ts";
import type { RowTable } from "../data/mod.ts";
import type { PolicySampler, RewardScorer } from "../rollouts/mod.ts";
import type { PolicyTrainer } from "../workers/mod.ts";

/** The rows of a run by split (`train`, `eval`, ...), opened once. */
export type RowTables = Record<string, RowTable>;

/** Where a run keeps its files. */
export type RunPaths = { run: string; checkpoints: string; publications: string };

export const Trainer = defineResource<PolicyTrainer>("trainer");
export const Sampler = defineResource<PolicySampler>("sampler");
export const Rewards = defineResource<RewardScorer>("rewards");
export const Rows = defineResource<RowTables>("rows");
export const Paths = defineResource<RunPaths>("paths");
