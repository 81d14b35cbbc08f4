/** The stage graphs that ship, and how a run of any graph is executed. */
export { type Refilled, type RefilledFrom, refilledRollouts } from "./dynamic_sampling.ts";
export { checkAlgorithm } from "./check_algorithm.ts";
export { checkRewards, type CheckRewardsOptions } from "./check_rewards.ts";
export * from "./end_workers.ts";
export { type EvaluationPlan, evaluations } from "./evaluate.ts";
export { type Difference, diffRuns, type FirstDifference, type Pair, type RunDiff } from "./diff.ts";
export { forkRun, type ForkRunOptions } from "./fork.ts";
export { collectGarbage, type GcOptions, type GcReport } from "./gc.ts";
export * from "./home.ts";
export {
  fixedReference,
  learned,
  type Learner,
  type LearnerConfig,
  type LearnFrom,
  savedLearner,
  startLearner,
} from "./learner.ts";
export * from "./ledger.ts";
export { removeLeftovers } from "./leftovers.ts";
export * from "./lineage.ts";
export { type Opened, openedOf } from "./open_algorithm.ts";
export { type OnlineRounds, onlineRounds, scoredRollouts, trainedOn } from "./online.ts";
export { MetricsFile } from "./metrics_file.ts";
export * from "./resources.ts";
export { type HeldOutPairs, heldOutPairs, type PreferenceRounds, preferenceRounds } from "./preference.ts";
export { type KeepPolicy, type KeepReason, kept } from "./retention.ts";
export { claimDirectories } from "./run_directories.ts";
export * from "./run_graph.ts";
export * from "./run_view.ts";
export { type Forkable, newestForkable } from "./salvage.ts";
export { greedyOf, samplingOf } from "./sampling.ts";
export * from "./serve.ts";
export { rowTables } from "./row_tables.ts";
export { forkableRound, type Resumable, resumable } from "./resumable.ts";
export { createRun, executeRun, type SessionOptions } from "./session.ts";
export { assignCredit, Credit } from "./stages/assign_credit.ts";
export { checkpointCritic, checkpointPolicy } from "./stages/checkpoint_policy.ts";
export { createModel } from "./stages/create_model.ts";
export { drawEvaluation, drawPrompts } from "./stages/draw_prompts.ts";
export { drawEvaluationPairs, drawPairs } from "./stages/draw_pairs.ts";
export { drawSupervised } from "./stages/draw_rows.ts";
export { evaluatePairs, PairEvaluation } from "./stages/evaluate_pairs.ts";
export { exportCritic, exportModel, exportPolicy } from "./stages/export_policy.ts";
export { GeneratedGroup, generateSlab } from "./stages/generate_slab.ts";
export { openAlgorithm } from "./stages/open_algorithm.ts";
export { questionsOf } from "./questions.ts";
export { openRows, type RowsConfig } from "./open_rows.ts";
export { openData, OpenedSplit } from "./stages/open_data.ts";
export { prepareCritic, preparePolicy, prepareReference } from "./stages/prepare_policy.ts";
export { Published, publishPolicy } from "./stages/publish_policy.ts";
export { refreshReference } from "./stages/refresh_reference.ts";
export { Draws, NO_DRAWS, sampleUntilFull } from "./stages/sample_until_full.ts";
export { ScoredGroup, scoreGroup } from "./stages/score_group.ts";
export { scorePairs } from "./stages/score_pairs.ts";
export { scoreTokens, scoreValues } from "./stages/score_tokens.ts";
export { Evaluation, passAtK, summariseEvaluation } from "./stages/summarise_evaluation.ts";
export { trainCritic, trainPolicy } from "./stages/train_policy.ts";
export { type SupervisedRounds, supervisedRounds } from "./supervised.ts";
export * from "./table.ts";
export { tryAlgorithm, type TryOptions } from "./try_algorithm.ts";
export { tryPythonReward } from "./try_reward.ts";
export { type Verified, type VerifiedVersion, verifyVersions } from "./verify.ts";
export { type RedoingWorkers, verifyRun, type VerifyRunOptions } from "./verify_run.ts";
export { type Why, whyEntry } from "./why.ts";
export type { BoundedRows } from "./stages/bound_rows.ts";
export type { WorkerGroupsOptions } from "./worker_groups.ts";
