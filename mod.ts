/**
 * What you need to write a graph, a reward or an algorithm. `holdfast/stages` has every stage that
 * ships, `holdfast/algorithms` the parts that losses share, `holdfast/runs` every command as a
 * call, `holdfast/engine` the durable engine, and `holdfast/testing` fakes for tests.
 *
 * @module
 */

/** Schemas of stages and configurations. */
export { z } from "zod";

// A graph, its stages, and running it.
export { type Context, defineStage, graph, type Ref, type RoundBuilder } from "./engine/mod.ts";
export { OnlineConfig, RecipeConfig } from "./configs/mod.ts";
export { DigitsTask, Policy } from "./data/mod.ts";
export {
  checkLedger,
  createModel,
  Evaluation,
  evaluations,
  exportPolicy,
  learned,
  NO_DRAWS,
  openData,
  preparePolicy,
  refilledRollouts,
  savedLearner,
  ScoredGroup,
  scoredRollouts,
  startLearner,
  trainedOn,
} from "./flows/mod.ts";
export { runGraph } from "./runs/mod.ts";

// A reward.
export { defineReward } from "./rewards/mod.ts";

// An algorithm: the language of losses, and advantages within a group.
export {
  chosen,
  defineAlgorithm,
  groupCenter,
  groupMean,
  groupZscore,
  leaveOneOut,
  pairMean,
  perSequenceMean,
  perSequenceSum,
  rejected,
  scalar,
  sequenceMean,
  stepSum,
  tokenMean,
  where,
} from "./algs/mod.ts";
