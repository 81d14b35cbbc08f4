/**
 * What the rounds of an algorithm learn besides the policy, and how one round passes it to the
 * next.
 */
import {
  firstCoef,
  hasValueModel,
  inPython,
  needsOf,
  readsParts,
  refillOf,
  titleOf,
} from "../algs/mod.ts";
import type { OnlineConfig } from "../configs/mod.ts";
import type { ArtifactRef, Policy, ScoredColumn } from "../data/mod.ts";
import type { GraphBuilder, Ref } from "../engine/mod.ts";
import { type Opened, openedOf } from "./open_algorithm.ts";
import { assignCredit } from "./stages/assign_credit.ts";
import { checkpointCritic, checkpointPolicy } from "./stages/checkpoint_policy.ts";
import { prepareCritic, prepareReference } from "./stages/prepare_policy.ts";
import { refreshReference } from "./stages/refresh_reference.ts";
import type { ScoredGroup } from "./stages/score_group.ts";
import { scoreTokens, scoreValues } from "./stages/score_tokens.ts";
import { trainCritic, trainPolicy } from "./stages/train_policy.ts";

/** What learning reads from a configuration. */
export type LearnerConfig =
  & Pick<
    OnlineConfig,
    "algorithm" | "trainer" | "value_model" | "reference" | "rollouts" | "sampler"
  >
  & Partial<Pick<OnlineConfig, "reward">>
  & {
    /** If it is already open. */
    opened?: Opened;
  };

/**
 * What a round passes on. Besides the policy, it contains only what changes from round to round.
 */
export type Learner = {
  policy: Ref<Policy>;
  /** The value model. */
  critic?: Ref<Policy>;
  coef?: Ref<Record<string, number>>;
  /** The reference of a KL, if it is refreshed. */
  reference?: Ref<Policy>;
};

/** What the first round starts with. */
export function startLearner(g: GraphBuilder, config: LearnerConfig, start: Ref<Policy>): Learner {
  const { algorithm, opened, value_model: { path, optimizer } } = config;
  const coef = opened ? opened.field("coef") : constantCoef(g, algorithm);
  const moves = readsReference(config) && config.reference.refresh_rounds !== null;
  return {
    policy: start,
    critic: hasValueModel(algorithm)
      ? g.stage(prepareCritic, { model_path: path ?? start.field("model_path"), optimizer })
      : undefined,
    coef,
    reference: moves ? fixedReference(g, config, start) : undefined,
  };
}

/** The coefficients of the first round; undefined: none change. */
function constantCoef(
  g: GraphBuilder,
  algorithm: LearnerConfig["algorithm"],
): Ref<Record<string, number>> | undefined {
  const coef = firstCoef(algorithm);
  return Object.keys(coef).length > 0 ? g.constant(coef) : undefined;
}

/**
 * The reference of a KL while it is not refreshed: the configured model, or else the policy that
 * the run starts from.
 */
export function fixedReference(
  g: GraphBuilder,
  config: LearnerConfig,
  start: Ref<Policy>,
): Ref<Policy> {
  const { path } = config.reference;
  if (path === null || !readsReference(config)) return start;
  return g.stage(prepareReference, { model_path: path, optimizer: config.trainer.optimizer });
}

/** What a round learns from, and with which models. */
export type LearnFrom = Learner & {
  scored: Ref<ScoredGroup[]>;
  reference: Ref<Policy>;
  /** Rewards of all drawn groups, if `scored` has only some of them. */
  metrics?: Ref<Record<string, number>>;
  /** What is shown of the round's rewards if not what `scored` has: they were normalised. */
  shown?: Ref<Record<string, number>>;
};

/**
 * Assigns credit to a round's scored groups and trains every model on them.
 * @throws {RangeError} If the algorithm reads each reward, and a custom graph does not pass them.
 */
export function learned(
  g: GraphBuilder,
  config: LearnerConfig,
  from: LearnFrom,
): Omit<Learner, "reference"> {
  const { algorithm, rollouts: { failed_fraction_max }, sampler: { temperature } } = config;
  const { optimizer, micro_batch_tokens_max, updates_per_batch, epochs_per_batch } = config.trainer;
  const { scored, policy, critic, coef, metrics, shown } = from;
  const opened = openedOf(g, config, "rewards");
  const tokens = scoredTokens(g, { ...config, opened }, from);
  const values = critic && scoredValues(g, { ...config, opened }, { scored, critic });
  const { warmup_rounds: rounds } = config.value_model;
  const reads = readsParts(algorithm);
  if (reads && config.reward === undefined) {
    throw new RangeError(
      `Cannot train with '${titleOf(algorithm)}' because it reads each reward by itself, and the ` +
        "configuration has no `reward`. Fix: pass the whole configuration to `learned`",
    );
  }
  const credit = g.stage(assignCredit, {
    scored,
    tokens,
    algorithm,
    temperature,
    updates_per_batch,
    failed_fraction_max,
    epochs_per_batch,
    rewards: reads ? config.reward : undefined, // Otherwise only their sum is read.
    // Leftover groups are from an older version.
    policy_number: policy.field("number"),
    metrics: shown ?? metrics,
    values,
    value_warmup: critic && rounds > 0 ? { trained: critic.field("number"), rounds } : undefined,
    coef,
    opened,
  });
  const work = { algorithm, optimizer, micro_batch_tokens_max, opened };
  return {
    policy: g.stage(trainPolicy, { batch: credit.field("batch"), policy, ...work }),
    critic: critic && trainedCritic(g, { ...config, opened }, {
      batch: credit.field("value_batch"),
      critic,
    }),
    coef: coef && credit.field("coef") as Ref<Record<string, number>>,
  };
}

/**
 * Saves what was learned and refreshes the reference. What was not trained is passed on unchanged.
 */
export function savedLearner(
  g: GraphBuilder,
  config: LearnerConfig & Pick<OnlineConfig, "rounds" | "lag" | "checkpoints">,
  { round, last = config.rounds, reference, ...learner }: Learner & {
    round: Ref<number>;
    /** The last round, if it is not the configured one. */
    last?: Ref<number> | number;
  },
): Learner {
  const { lag, checkpoints, reference: { refresh_rounds } } = config;
  const { policy, critic, coef } = learner;
  return {
    policy: g.stage(checkpointPolicy, {
      policy,
      round,
      last,
      lag,
      ...checkpoints,
      beside: critic,
    }),
    critic: critic &&
      g.stage(checkpointCritic, { policy: critic, beside: policy, round, last, ...checkpoints }),
    coef,
    reference: reference && refresh_rounds !== null
      ? g.stage(refreshReference, { policy, reference, round, refresh_rounds })
      : undefined,
  };
}

/** Optimizer steps per batch of a round. */
function stepsPerBatch({ trainer }: LearnerConfig): number {
  return trainer.updates_per_batch * trainer.epochs_per_batch;
}

/** What a file reads is known only once it is open: until then it may read the reference. */
function readsReference(config: LearnerConfig): boolean {
  return inPython(config.algorithm) ||
    needsOf(config.algorithm, stepsPerBatch(config)).includes("ref_logp");
}

/** Those of groups that an older version sampled: the ratio of their first step is not 1. */
function staleColumnsOf(
  { opened, algorithm }: LearnerConfig,
): Ref<ScoredColumn[]> | ScoredColumn[] {
  return opened ? opened.field("stale_columns") : needsOf(algorithm, Infinity);
}

/** The columns to score: only those that credit and loss read. */
function columnsOf({ opened, ...config }: LearnerConfig): Ref<ScoredColumn[]> | ScoredColumn[] {
  return opened ? opened.field("columns") : needsOf(config.algorithm, stepsPerBatch(config));
}

/** The log-probabilities of the round's tokens by the policy and the reference. */
function scoredTokens(
  g: GraphBuilder,
  config: LearnerConfig,
  from: LearnFrom,
): Ref<Record<string, ArtifactRef>> {
  const {
    algorithm,
    trainer: { micro_batch_tokens_max },
    sampler: { temperature },
    reference: { offload },
  } = config;
  const { scored, policy, reference, metrics } = from;
  const { surplus = "discard" } = refillOf(algorithm) ?? {};
  // Then some groups are from an older version.
  const reused = metrics !== undefined && surplus !== "discard";
  const columns = columnsOf(config);
  return g.stage(scoreTokens, {
    scored,
    policy,
    reference,
    columns,
    temperature,
    micro_batch_tokens_max,
    stale_columns: reused ? staleColumnsOf(config) : undefined,
    stale_old_logp: surplus === "reuse" ? "behaviour" : undefined,
    reference_offload: offload,
  });
}

type Values = { scored: Ref<ScoredGroup[]>; critic: Ref<Policy> };

function scoredValues(g: GraphBuilder, config: LearnerConfig, { scored, critic }: Values) {
  const columns = columnsOf(config);
  return g.stage(scoreValues, {
    scored,
    critic,
    columns,
    micro_batch_tokens_max: valueTokensMax(config),
  });
}

type ValueBatch = { batch: Ref<ArtifactRef | null | undefined>; critic: Ref<Policy> };

function trainedCritic(
  g: GraphBuilder,
  config: LearnerConfig,
  { batch, critic }: ValueBatch,
): Ref<Policy> {
  return g.stage(trainCritic, {
    batch: batch as Ref<ArtifactRef | null>, // There, as credit was given values.
    policy: critic,
    algorithm: config.algorithm,
    opened: config.opened,
    optimizer: config.value_model.optimizer,
    micro_batch_tokens_max: valueTokensMax(config),
  });
}

function valueTokensMax({ trainer, value_model }: LearnerConfig): number {
  return value_model.micro_batch_tokens_max ?? trainer.micro_batch_tokens_max;
}
