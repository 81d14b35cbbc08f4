import { needsOf, unpairedOf } from "../algs/mod.ts";
import { evaluationName, evaluationSets, PreferenceConfig } from "../configs/mod.ts";
import type { ArtifactRef, Policy, SourceConfig } from "../data/mod.ts";
import { graph, type GraphBuilder, type Ref } from "../engine/mod.ts";
import type { Moment } from "./evaluate.ts";
import { type Measure, type RoundEvaluation, roundEvaluation } from "./evaluate_rounds.ts";
import { type Opened, openedOf } from "./open_algorithm.ts";
import { mixedRound, mixtureCarried } from "./mixture.ts";
import { openRows, type RowsConfig } from "./open_rows.ts";
import { checkpointPolicy } from "./stages/checkpoint_policy.ts";
import { startingModel } from "./stages/create_model.ts";
import { drawCompletions, drawEvaluationCompletions } from "./stages/rows/draw_completions.ts";
import { drawEvaluationPairs, drawPairs } from "./stages/rows/draw_pairs.ts";
import { evaluatePairs, type PairEvaluation } from "./stages/evaluation/evaluate_pairs.ts";
import { exportedModels } from "./exported_models.ts";
import { exportModel } from "./stages/export_policy.ts";
import { preparePolicy } from "./stages/prepare_policy.ts";
import { scorePairs } from "./stages/score_pairs.ts";
import { trainPolicy } from "./stages/train_policy.ts";
import { judgedRound, progressCarried, type Stopping, untilDone } from "./stop_early.ts";
import { supervisedRounds, WARMUP_STEPS } from "./supervised.ts";

/** What the rounds of preference learning read from a configuration. */
export type PreferenceRounds =
  & Pick<
    PreferenceConfig,
    "seed" | "rounds" | "pairs_per_round" | "algorithm" | "trainer" | "reference" | "checkpoints"
  >
  & RowsConfig
  & Stopping
  & {
    /** The algorithm, if it is in Python. */
    opened: Opened;
    /** What evaluates a round's policy; absent: rounds are not evaluated. */
    evaluated?: RoundEvaluation;
  };

type Scoring = { batch: Ref<ArtifactRef>; policy: Ref<Policy>; start: Ref<Policy> };

/**
 * The batch with the reference model's scores that the loss reads. The reference is the configured
 * model, or else the policy that the run starts from.
 */
function scoredBatch(
  g: GraphBuilder,
  config: PreferenceRounds,
  { batch, policy, start }: Scoring,
): Ref<ArtifactRef> {
  const { micro_batch_tokens_max, updates_per_batch, epochs_per_batch, lora } = config.trainer;
  const { path, offload } = config.reference;
  const columns = config.opened
    ? config.opened.field("columns")
    : needsOf(config.algorithm, updates_per_batch * epochs_per_batch);
  // With an adapter, the model that the run starts from is already loaded: it is the trained model
  // with its adapter switched off.
  const reference = { path: path ?? (lora ? null : start.field("model_path")), offload };
  return g.stage(scorePairs, { batch, policy, reference, columns, micro_batch_tokens_max });
}

/** Rounds over preference pairs, or over labelled completions. Returns the last policy. */
export function preferenceRounds(
  g: GraphBuilder,
  config: PreferenceRounds,
  start: Ref<Policy>,
): Ref<Policy> {
  const { seed, algorithm, opened, pairs_per_round: count, rounds: times, checkpoints } = config;
  const { optimizer, micro_batch_tokens_max, updates_per_batch, epochs_per_batch } = config.trainer;
  const data = openRows(g, config, {
    split: "train",
    use: "preference",
    model_path: start.field("model_path"),
  });
  const work = { algorithm, optimizer, micro_batch_tokens_max, opened };
  const unpaired = unpairedOf(algorithm);
  const mixing = mixtureCarried(g, config);
  const carry = { policy: start, ...mixing, ...progressCarried(g, config) };
  const rounds = g.loop("round", { times, carry, ...untilDone(config) }, (r) => {
    const policy = r.carried("policy");
    const from = { data, round: r.index, count };
    const mixed = mixedRound(r, config, {
      ...from,
      drawn: mixing.drawn && r.carried("drawn"),
    });
    const draw = { ...from, seed, updates_per_batch, epochs_per_batch, picks: mixed?.picks };
    const rows = unpaired === null
      ? r.stage(drawPairs, draw)
      : r.stage(drawCompletions, { ...draw, ...unpaired });
    const batch = scoredBatch(r, config, { batch: rows, policy, start });
    const trained = r.stage(trainPolicy, { batch, policy, ...work });
    const evaluated = config.evaluated?.(r, { policy: trained, round: r.index }) ?? trained;
    const at = { policy: evaluated, round: r.index };
    const judging = { ...at, progress: () => r.carried("progress") };
    const { last, returned } = judgedRound(r, config, judging);
    return {
      policy: r.stage(checkpointPolicy, { ...at, last, ...checkpoints }),
      drawn: mixed?.drawn,
      ...returned,
    };
  });
  return rounds.policy;
}

/** Held-out pairs with a separate result. `set`: its name; null: there is only one. */
export type HeldOutPairs = { set: string | null; batch: Ref<ArtifactRef> };

/**
 * The held-out pairs that a configuration evaluates on, with the reference model's scores that the
 * loss reads.
 */
export function heldOutPairs(
  g: GraphBuilder,
  config: PreferenceRounds & Pick<PreferenceConfig, "evaluate"> & {
    data?: { eval?: SourceConfig[] };
  },
  start: Ref<Policy>,
): HeldOutPairs[] {
  if (config.evaluate === null) return [];
  const { pairs } = config.evaluate;
  const unpaired = unpairedOf(config.algorithm);
  return evaluationSets(config).map(({ name: set, split, settings }) => {
    const data = openRows(g, config, {
      split,
      use: "preference",
      model_path: start.field("model_path"),
    });
    const first = { data, count: settings?.pairs ?? pairs };
    const batch = unpaired === null
      ? g.stage(drawEvaluationPairs, first)
      : g.stage(drawEvaluationCompletions, { ...first, ...unpaired });
    return { set, batch: scoredBatch(g, config, { batch, policy: start, start }) };
  });
}

type PairsEvaluated = { policy: Ref<Policy>; evaluations: Ref<PairEvaluation>[] };

/** Evaluates a policy on every set of held-out pairs, one after the other, and passes it on. */
function pairEvaluations(
  g: GraphBuilder,
  config: PreferenceRounds,
  { moment: { label, round }, held_out, policy: judged }: {
    moment: Moment;
    held_out: HeldOutPairs[];
    policy: Ref<Policy>;
  },
): PairsEvaluated {
  const { algorithm, opened, trainer: { micro_batch_tokens_max } } = config;
  const work = { algorithm, micro_batch_tokens_max, opened };
  return held_out.reduce(({ policy, evaluations }: PairsEvaluated, { set, batch }) => {
    const name = evaluationName(set, label);
    const evaluation = g.stage(evaluatePairs, {
      name,
      round,
      set: set ?? undefined,
      batch,
      policy,
      ...work,
    });
    return {
      policy: evaluation.field("policy"),
      evaluations: [...evaluations, evaluation.field("evaluation")],
    };
  }, { policy: judged, evaluations: [] });
}

/**
 * The model directory that training starts from: read or created, and with a warm-up first trained
 * on the chosen sides.
 */
function startDirectory(g: GraphBuilder, config: PreferenceConfig): Ref<string> | string {
  const { warmup, trainer: { optimizer: _, ...trainer } } = config;
  const model = startingModel(g, config.model);
  if (warmup === null) return model;
  const teacher = { ...trainer, ...WARMUP_STEPS, optimizer: warmup.optimizer };
  const raw = g.stage(preparePolicy, { model_path: model, optimizer: warmup.optimizer }, {
    as: "prepare_raw",
  });
  const taught = supervisedRounds(g, {
    ...config,
    stop: null,
    ...warmup,
    algorithm: { name: "sft" },
    trainer: teacher,
  }, raw);
  return g.stage(exportModel, { policy: taught, name: "warm" }, { as: "export_warm" }).field("dir");
}

/**
 * Preference learning: evaluate on held-out pairs, train round by round, export, evaluate again.
 */
export const preference = graph("preference", PreferenceConfig, (g, configured) => {
  const model_path = startDirectory(g, configured);
  const opened = openedOf(g, configured, "pairs");
  const config = { ...configured, opened };
  const start = g.stage(preparePolicy, { model_path, optimizer: config.trainer.optimizer });
  const held_out = heldOutPairs(g, config, start);
  const measured = (here: GraphBuilder, { policy, moment }: Parameters<Measure>[1]) =>
    pairEvaluations(here, config, { moment, held_out, policy });
  const every_rounds = config.evaluate?.every_rounds ?? undefined;
  const evaluated = every_rounds === undefined
    ? undefined
    : roundEvaluation(measured, { every_rounds, last: config.rounds });
  const before = configured.start_from === undefined
    ? measured(g, { policy: start, moment: { label: "before" } })
    : { policy: start, evaluations: [] };
  const policy = preferenceRounds(g, { ...config, evaluated }, before.policy);
  const exported = exportedModels(g, config, { policy });
  const after = evaluated ? [] : measured(g, { policy, moment: { label: "after" } }).evaluations;
  return { policy, ...exported, evaluations: [...before.evaluations, ...after] };
});
