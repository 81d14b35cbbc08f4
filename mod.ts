/**
 * Holdfast for scripts: everything that the command line does is a call here, and everything that a graph, a reward or
 * an algorithm of one's own is made of.
 *
 * @module
 */

/** Schemas of stages and configurations. */
export { z } from "zod";

// The engine: stages, graphs, runs, stores.
export {
  type ArtifactRef,
  ArtifactStore,
  cancelRun,
  canonicalJson,
  type Cause,
  type Clock,
  computedStatus,
  type Context,
  defineResource,
  defineStage,
  Engine,
  EngineError,
  type EngineEvent,
  type EngineOptions,
  type Graph,
  graph,
  type GraphBuilder,
  type GraphDefinition,
  InvalidInputError,
  ManualClock,
  type Outcome,
  PostgresStore,
  provide,
  type Provided,
  type Ref,
  type Resource,
  type RoundBuilder,
  type RunHead,
  SqliteStore,
  type Stage,
  type Store,
  systemClock,
  type Wiring,
} from "./engine/mod.ts";
export { SimulatedProcess, SimulatedStore, SimulatedWorld } from "./engine/simulation.ts";
export { SimulatedNetwork } from "./workers/simulation.ts";
export { type FakeTask, FakeWorkers, fakeWorkers, MemoryStore } from "./engine/testing.ts";

// Data: the nouns that travel, and the sources that read them.
export {
  type Batch,
  DataError,
  decodeSlab,
  digitsTables,
  DigitsTask,
  type Draw,
  drawRows,
  type Expression,
  type GeneratedSlab,
  type GroupRef,
  loadRows,
  type Message,
  Optimizer,
  Policy,
  Prompt,
  Row,
  type RowTable,
  Sampling,
  Slab,
  SourceConfig,
  type Trajectory,
} from "./data/mod.ts";

// Algorithms and the language that their losses are written in.
export {
  type Algorithm,
  AlgorithmChoice,
  ALGORITHMS,
  type AnyAlgorithm,
  chosen,
  type CreditRound,
  defineAlgorithm,
  evaluate as evaluateExpression,
  type EvaluatedStep,
  Expr,
  expressionText,
  groupCenter,
  groupMean,
  groupZscore,
  k3,
  leaveOneOut,
  pairMean,
  perSequenceMean,
  perSequenceSum,
  rejected,
  scalar,
  sequenceMean,
  stepSum,
  surrogate,
  tokenMean,
  traceAlgorithm,
  where,
} from "./algs/mod.ts";

// Rewards.
export {
  defineReward,
  exactMatch,
  gsm8k,
  length,
  type Reward,
  RewardConfig,
  type RewardInput,
  REWARDS,
  type Score,
} from "./rewards/mod.ts";

// Rollouts and workers: what stages ask for, and the fakes that stand in for processes.
export { PolicySampler, RewardScorer, RolloutsConfig } from "./rollouts/mod.ts";
export {
  ensureEnvironment,
  FakeAgent,
  FakeFailure,
  fakeLauncher,
  type FakeScript,
  PolicyTrainer,
  Publication,
  SamplerConfig,
  TrainerConfig,
  type WorkerGroup,
  Workers,
  WorkersConfig,
} from "./workers/mod.ts";

// Configurations: the YAML files that people run.
export {
  Config,
  ConfigError,
  configJsonSchema,
  EvaluateConfig,
  loadConfig,
  type LoadedConfig,
  OnlineConfig,
  parseConfig,
  QuickstartConfig,
  RecipeConfig,
  SupervisedConfig,
} from "./configs/mod.ts";

// Flows: the stages and graphs that ship, and how a run of any graph is executed and looked at.
export {
  assignCredit,
  buildFlow,
  checkLedger,
  checkpointPolicy,
  collectGarbage,
  createModel,
  createRun,
  diffRuns,
  drawEvaluation,
  drawPrompts,
  drawSupervised,
  Evaluation,
  evaluations,
  executeRun,
  exportPolicy,
  FLOW_GRAPHS,
  flowDefinition,
  forkRun,
  GeneratedGroup,
  generateSlab,
  greedyOf,
  Home,
  type Ledger,
  onlineRounds,
  openData,
  OpenedSplit,
  Paths,
  preparePolicy,
  Published,
  publishPolicy,
  resumeRun,
  Rewards,
  Rows,
  runGraph,
  type RunGraphOptions,
  type RunView,
  runView,
  Sampler,
  samplingOf,
  ScoredGroup,
  scoredRollouts,
  scoreGroup,
  scoreTokens,
  serveRuns,
  type SessionOptions,
  summariseEvaluation,
  supervisedRounds,
  trainedOn,
  Trainer,
  trainPolicy,
  verifyRun,
  whyEntry,
} from "./flows/mod.ts";

// What the reading commands print, as values.
export { type CheckpointFacts, readCheckpoints } from "./cli/checkpoints.ts";
export { type Check, machineChecks } from "./cli/doctor.ts";
export { readRollouts, type Rollout, type RolloutOptions } from "./cli/rollouts.ts";
export { type RewardTest, tryReward } from "./cli/reward_test.ts";
