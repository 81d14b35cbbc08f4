/** Which worker processes a configuration requests, and how replans change them. */
import { z } from "zod";
import { AlgorithmChoice, hasValueModel, headOf } from "../../algs/mod.ts";
import { type PrepareConfig, RecoveryConfig } from "../../configs/mod.ts";
import { type NewRow, recordedValue } from "../../engine/mod.ts";
import { RolloutsConfig } from "../../rollouts/mod.ts";
import {
  type AnyRole,
  type AskedReplan,
  ModelOpening,
  Replan,
  replanned,
  requestedReplans,
  ROLES,
  SamplerConfig,
  TrainerConfig,
  ValueModelConfig,
  valueTrainer,
  type WorkerBlocks,
  WorkersConfig,
} from "../../workers/mod.ts";

/** A custom graph may have more settings, or leave some out. */
const RecordedTrainer = z.looseObject(TrainerConfig.omit({ optimizer: true }).shape);
const RecordedSampler = z.looseObject(SamplerConfig.shape);
const RecordedModel = z.object(ModelOpening.shape);
type Tokenizer = NonNullable<PrepareConfig["tokenizer"]>;
const NO_SAMPLERS: SamplerConfig = { ...SamplerConfig.parse({}), replicas: 0 };

/** How a configuration's model is opened. */
export function modelOpening({ model = {} }: Record<string, unknown>): ModelOpening {
  // A custom graph may have a different block.
  return RecordedModel.catch(ModelOpening.parse({})).parse(model);
}

/**
 * Which worker processes a configuration requests; null if it has no trainer. Without a sampler
 * block there are no samplers.
 */
export function workerBlocks(
  config: Record<string, unknown>,
  roles: readonly AnyRole[] = ROLES,
): WorkerBlocks | null {
  const { flow, tokenizer } = config;
  // A flow that trains nothing may have a tokenizer: a trainer counts with it.
  const counts = flow === "prepare" && tokenizer
    ? { device: "cpu", python: (tokenizer as Tokenizer).python }
    : null;
  const trains = config.trainer ?? counts;
  if (!trains) return null;
  const { seed, rollouts, recovery } = config as unknown as WorkerBlocks & {
    rollouts?: object;
    recovery?: object;
  };
  const trainer = RecordedTrainer.parse(trains);
  const sampler = config.sampler === undefined
    ? NO_SAMPLERS
    : RecordedSampler.parse(config.sampler);
  const { reward_processes } = RolloutsConfig.parse(rollouts ?? {});
  const workers = WorkersConfig.parse(config.workers ?? {});
  const { allow_replan } = RecoveryConfig.parse(recovery ?? {});
  // A custom graph may have none, or a custom one.
  const algorithm = AlgorithmChoice.safeParse(config.algorithm);
  const head = algorithm.success ? headOf(algorithm.data) : null;
  const values = algorithm.success && hasValueModel(algorithm.data);
  const value_model = values ? ValueModelConfig.parse(config.value_model ?? {}) : null;
  const configured = roles.filter(({ name, block }) =>
    block !== null && config[name] !== undefined
  );
  const others = Object.fromEntries(
    configured.map(({ name, block }) => [name, block.parse(config[name])]),
  );
  return {
    trainer,
    model: modelOpening(config),
    head,
    value_model,
    sampler,
    seed: seed ?? 0,
    reward_processes,
    allow_replan,
    workers,
    others,
  };
}

/** The blocks after all replans, and the rows for the requested ones. */
export function plannedBlocks(
  blocks: WorkerBlocks | null,
  recorded: readonly NewRow[],
  requested: AskedReplan,
): { blocks: WorkerBlocks | null; requested: NewRow[] } {
  if (blocks === null) return { blocks, requested: [] };
  const earlier = recorded.filter(({ kind }) => kind === "note/replan").map((row) =>
    Replan.parse(recordedValue(row))
  );
  const { trainer, value_model } = blocks;
  const critic = value_model ? valueTrainer(trainer, value_model) : null;
  const rows = [
    ...requestedReplans(trainer, earlier, requested),
    ...(critic ? requestedReplans(critic, earlier, requested, "value_model") : []),
  ];
  const then = replannedBlocks(blocks, [...earlier, ...rows]);
  const note = (row: Replan): NewRow => ({
    kind: "note/replan",
    key: "resume",
    value: JSON.stringify(row),
  });
  return { blocks: then, requested: rows.map(note) };
}

/** The blocks of a configuration after these replans. */
export function replannedBlocks<T extends { trainer?: object; value_model?: object | null }>(
  blocks: T,
  replans: readonly Replan[],
): T {
  const { trainer, value_model } = blocks;
  return {
    ...blocks,
    ...(trainer && { trainer: replanned(trainer, replans) }),
    ...(value_model && { value_model: replanned(value_model, replans, "value_model") }),
  };
}
