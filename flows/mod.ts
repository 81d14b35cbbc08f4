/** The shipped stage graphs: their stages, and how these are wired together. */
export { type Refilled, type RefilledFrom, refilledRollouts } from "./dynamic_sampling.ts";
export { CARRIED } from "./carried.ts";
export { checkAlgorithm } from "./check_algorithm.ts";
export { type EvaluationPlan, evaluations, type EvaluationSettings } from "./evaluate.ts";
export type { RoundEvaluation } from "./evaluate_rounds.ts";
export { bootstrapIntervals, majorityRight, passAtK, passHatK } from "./evaluation_statistics.ts";
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
export {
  type Mixed,
  mixedRound,
  mixtureAfter,
  type MixtureCarried,
  mixtureCarried,
} from "./mixture.ts";
export { type Opened, openedOf } from "./open_algorithm.ts";
export { onlineRounds, scoredRollouts, trainedOn } from "./online.ts";
export type { OnlineRounds } from "./online_rounds.ts";
export * from "./resources.ts";
export {
  type HeldOutPairs,
  heldOutPairs,
  type PreferenceRounds,
  preferenceRounds,
} from "./preference.ts";
export { refuseOthersOutput } from "./files/output_directory.ts";
export { cardPage, droppedTable, PreparedCard } from "./files/prepared_card.ts";
export { type KeepPolicy, type KeepReason, kept } from "./files/retention.ts";
export { greedyOf, samplingOf } from "./sampling.ts";
export { assignCredit, RoundCredit } from "./stages/assign_credit.ts";
export { checkpointCritic, checkpointPolicy } from "./stages/checkpoint_policy.ts";
export { createModel } from "./stages/create_model.ts";
export { dropDuplicates, type UniqueRows } from "./stages/preparation/drop_duplicates.ts";
export { drawEvaluation, drawPrompts } from "./stages/rows/draw_prompts.ts";
export { drawCompletions, drawEvaluationCompletions } from "./stages/rows/draw_completions.ts";
export { drawEvaluationPairs, drawPairs } from "./stages/rows/draw_pairs.ts";
export { drawEvaluationRows, drawSupervised } from "./stages/rows/draw_rows.ts";
export { evaluateLoss, LossEvaluation } from "./stages/evaluation/evaluate_loss.ts";
export { evaluatePairs, PairEvaluation } from "./stages/evaluation/evaluate_pairs.ts";
export { exportAverage, exportCritic, exportPolicy } from "./stages/export_policy.ts";
export { type FilteredPart, filterPart } from "./stages/preparation/filter_part.ts";
export {
  type EvaluationIndex,
  indexEvaluationSets,
} from "./stages/preparation/index_evaluation_sets.ts";
export { listInputs } from "./stages/preparation/list_inputs.ts";
export { type MeasuredPart, measurePart } from "./stages/preparation/measure_part.ts";
export { ReadInput, readInput } from "./stages/preparation/read_input.ts";
export { PreparedData, writeCard } from "./stages/preparation/write_card.ts";
export { writeSplit, type WrittenSplit } from "./stages/preparation/write_split.ts";
export { GeneratedGroup, generateSlab } from "./stages/generate_slab.ts";
export { sourceOf } from "./stages/open_algorithm.ts";
export { type RowsConfig } from "./open_rows.ts";
export { type MixedSource, mixSources, steerMixture } from "./stages/rows/mix_sources.ts";
export { openData, OpenedSplit } from "./stages/rows/open_data.ts";
export { prepareCritic, preparePolicy, prepareReference } from "./stages/prepare_policy.ts";
export { Published, publishPolicy } from "./stages/publish_policy.ts";
export { refreshReference } from "./stages/refresh_reference.ts";
export { Draws, NO_DRAWS, sampleUntilFull } from "./stages/sample_until_full.ts";
export { ScoredGroup, scoreGroup } from "./stages/score_group.ts";
export { scorePairs } from "./stages/score_pairs.ts";
export { scoreTokens, scoreValues } from "./stages/score_tokens.ts";
export {
  Evaluation,
  ProblemResult,
  summariseEvaluation,
} from "./stages/evaluation/summarise_evaluation.ts";
export { stepMetrics, trainCritic, trainPolicy } from "./stages/train_policy.ts";
export type { Stopping } from "./stop_early.ts";
export { type SupervisedRounds, supervisedRounds } from "./supervised.ts";
export * from "./table.ts";
export type { BoundedRows } from "./stages/rows/bound_rows.ts";
export { OWN_NAMES } from "./files/own_files.ts";
export { creditRound, RoundTokens } from "./stages/credit_round.ts";
export { rewardParts } from "./stages/reward_parts.ts";
export { unlessMissing } from "./files/unless_missing.ts";
