/**
 * The life of a run of any graph: its home, its session, forks, verification, garbage collection
 * and display.
 */
export type { Check } from "./checks/check.ts";
export { checkRewards } from "./checks/check_rewards.ts";
export { type ComparedEvaluations, compareEvaluations } from "./compare_evaluations.ts";
export * from "./session/end_workers.ts";
export {
  type Difference,
  diffRuns,
  type FirstDifference,
  type Pair,
  type RunDiff,
} from "./diff_runs.ts";
export { findRun, newestRun } from "./home/find_run.ts";
export { forkRun, type ForkRunOptions } from "./forks/fork_run.ts";
export { collectGarbage, type GcOptions, type GcReport } from "./garbage/collect_garbage.ts";
export * from "./home/home.ts";
export { homeDirectory } from "./home/home_directory.ts";
export { checkModelCode, pinnedData, pinnedModels, withDirectories } from "./session/hub_models.ts";
export { removeLeftovers } from "./garbage/leftovers.ts";
export * from "./forks/lineage.ts";
export { machineChecks } from "./checks/machine_checks.ts";
export { MetricsFile } from "./tracking/metrics_file.ts";
export { type Axis, axisOf, share } from "./plots/axis.ts";
export { COLOURS, curvesSvg, smoothed } from "./plots/curves_svg.ts";
export { type CurveX, metricCurve, whyNotBy, X_LABELS } from "./plots/metric_curve.ts";
export { type MetricPlot, plotAxes, plotSvg } from "./plots/metric_plot.ts";
export { picturePng } from "./plots/picture_png.ts";
export { JournalEvents } from "./tracking/journal_events.ts";
export { type CheckpointFacts, readCheckpoints } from "./read_checkpoints.ts";
export { readRollouts, type Rollout, type RolloutOptions } from "./read_rollouts.ts";
export { claimDirectories } from "./home/run_directories.ts";
export * from "./session/run_graph.ts";
export * from "./run_view.ts";
export { newestForkable } from "./forks/salvage.ts";
export * from "./session/serve_runs.ts";
export { type NamedRows, namedRows } from "./trials/named_rows.ts";
export { rowTables } from "./session/row_tables.ts";
export { recordedConfig } from "./session/settings.ts";
export { type RescoreOptions, rescoreRun } from "./trials/rescore_run.ts";
export type { Rescored, Spread } from "./trials/rescored.ts";
export { otherRelease, sourcesDigest, thisRelease } from "./session/release.ts";
export { forkableRound, type Resumable, resumable } from "./session/resumable.ts";
export { resolvedStart } from "./start/start_from.ts";
export { StartNote, startOf } from "./start/start_note.ts";
export { createRun, executeRun, type SessionOptions } from "./session/session.ts";
export { questionsOf } from "./checks/questions.ts";
export { unbalancedLabels } from "./checks/unbalanced_labels.ts";
export { mergeAdapter } from "./merge_adapter.ts";
export { type TrackPoint, TrackPoints } from "./tracking/track_points.ts";
export { trackRun } from "./tracking/track_run.ts";
export { tryAlgorithm } from "./trials/try_algorithm.ts";
export type { TriedReward } from "./trials/try_python_reward.ts";
export { type RewardTest, type RewardTestOptions, tryReward } from "./trials/try_reward.ts";
export { type Verified, type VerifiedVersion, verifyVersions } from "./verify.ts";
export { verifyRun, type VerifyRunOptions } from "./verify_run.ts";
export { type Why, whyEntry } from "./why_entry.ts";
