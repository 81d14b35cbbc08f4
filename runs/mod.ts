/**
 * The life of a run of any graph: its home, its session, forks, verification, garbage collection
 * and display.
 */
export type { Check } from "./check.ts";
export { checkRewards } from "./check_rewards.ts";
export { type ComparedEvaluations, compareEvaluations } from "./compare_evaluations.ts";
export * from "./end_workers.ts";
export {
  type Difference,
  diffRuns,
  type FirstDifference,
  type Pair,
  type RunDiff,
} from "./diff_runs.ts";
export { findRun, newestRun } from "./find_run.ts";
export { forkRun, type ForkRunOptions } from "./fork_run.ts";
export { collectGarbage, type GcOptions, type GcReport } from "./collect_garbage.ts";
export * from "./home.ts";
export { homeDirectory } from "./home_directory.ts";
export { checkModelCode, pinnedModels, withDirectories } from "./hub_models.ts";
export { removeLeftovers } from "./leftovers.ts";
export * from "./lineage.ts";
export { machineChecks } from "./machine_checks.ts";
export { MetricsFile } from "./metrics_file.ts";
export { type CheckpointFacts, readCheckpoints } from "./read_checkpoints.ts";
export { readRollouts, type Rollout, type RolloutOptions } from "./read_rollouts.ts";
export { claimDirectories } from "./run_directories.ts";
export * from "./run_graph.ts";
export * from "./run_view.ts";
export { newestForkable } from "./salvage.ts";
export * from "./serve_runs.ts";
export { type NamedRows, namedRows } from "./named_rows.ts";
export { rowTables } from "./row_tables.ts";
export { type RescoreOptions, rescoreRun } from "./rescore_run.ts";
export type { Rescored, Spread } from "./rescored.ts";
export { otherRelease, sourcesDigest, thisRelease } from "./release.ts";
export { forkableRound, type Resumable, resumable } from "./resumable.ts";
export { resolvedStart } from "./start_from.ts";
export { StartNote, startOf } from "./start_note.ts";
export { createRun, executeRun, type SessionOptions } from "./session.ts";
export { questionsOf } from "./questions.ts";
export { mergeAdapter } from "./merge_adapter.ts";
export { trackRun } from "./track_run.ts";
export { tryAlgorithm } from "./try_algorithm.ts";
export type { TriedReward } from "./try_python_reward.ts";
export { type RewardTest, type RewardTestOptions, tryReward } from "./try_reward.ts";
export { type Verified, type VerifiedVersion, verifyVersions } from "./verify.ts";
export { verifyRun, type VerifyRunOptions } from "./verify_run.ts";
export { type Why, whyEntry } from "./why_entry.ts";
