import { SupervisedConfig } from "../configs/mod.ts";
import type { Policy } from "../data/mod.ts";
import { graph, type GraphBuilder, type Ref } from "../engine/mod.ts";
import { evaluations } from "./evaluate.ts";
import { exportedModels } from "./exported_models.ts";
import { startingModel } from "./stages/create_model.ts";
import {
  aroundRounds,
  bothMeasures,
  lossMeasure,
  type Measure,
  type RoundEvaluation,
  sampledMeasure,
} from "./evaluate_rounds.ts";
import { mixedRound, mixtureCarried } from "./mixture.ts";
import { openedOf } from "./open_algorithm.ts";
import { openRows, type RowsConfig } from "./open_rows.ts";
import { judgedRound, progressCarried, type Stopping, untilDone } from "./stop_early.ts";
import { checkpointPolicy } from "./stages/checkpoint_policy.ts";
import { drawSupervised } from "./stages/rows/draw_rows.ts";
import { preparePolicy } from "./stages/prepare_policy.ts";
import { trainPolicy } from "./stages/train_policy.ts";

/**
 * What the rounds of supervised training read from a configuration; the quickstart derives one from
 * its own.
 */
export type SupervisedRounds =
  & Pick<
    SupervisedConfig,
    "seed" | "rounds" | "rows_per_round" | "algorithm" | "trainer" | "checkpoints"
  >
  & RowsConfig
  & Stopping
  & {
    /** What evaluates a round's policy; absent: rounds are not evaluated. */
    evaluated?: RoundEvaluation;
  };

/**
 * A warm-up before another flow: one optimizer step per round, regardless of how its batches are
 * split.
 */
export const WARMUP_STEPS = { updates_per_batch: 1, epochs_per_batch: 1 };

/** Rounds over supervised rows. Returns the last policy. */
export function supervisedRounds(
  g: GraphBuilder,
  config: SupervisedRounds,
  start: Ref<Policy>,
): Ref<Policy> {
  const { seed, algorithm, rows_per_round: count, rounds: times, checkpoints } = config;
  const {
    optimizer,
    micro_batch_tokens_max,
    updates_per_batch,
    epochs_per_batch,
  } = config.trainer;
  const data = openRows(g, config, {
    split: "train",
    use: "completion",
    model_path: start.field("model_path"),
  });
  const opened = openedOf(g, config, "completions");
  const work = { algorithm, optimizer, micro_batch_tokens_max, opened };
  const mixing = mixtureCarried(g, config);
  const carry = { policy: start, ...mixing, ...progressCarried(g, config) };
  const rounds = g.loop("step", { times, carry, ...untilDone(config) }, (r) => {
    const policy = r.carried("policy");
    const drawn = mixing.drawn && r.carried("drawn");
    const mixed = mixedRound(r, config, { data, round: r.index, count, drawn });
    const batch = r.stage(drawSupervised, {
      data,
      round: r.index,
      count,
      seed,
      updates_per_batch,
      epochs_per_batch,
      picks: mixed?.picks,
    });
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

/** Supervised fine-tuning. */
export const supervised = graph("supervised", SupervisedConfig, (g, config) => {
  const start = g.stage(preparePolicy, {
    model_path: startingModel(g, config.model),
    optimizer: config.trainer.optimizer,
  });
  const every_rounds = config.evaluate?.every_rounds ?? undefined;
  if (every_rounds === undefined && !config.evaluate?.loss) {
    const before = config.start_from === undefined
      ? evaluations(g, { ...config, label: "before" }, start)
      : [];
    const policy = supervisedRounds(g, config, start);
    const exported = exportedModels(g, config, { policy });
    const after = evaluations(g, { ...config, label: "after" }, policy);
    return { policy, ...exported, evaluations: [...before, ...after] };
  }
  const measure = supervisedMeasure(g, config, start);
  const around = aroundRounds(g, config, { measure, every_rounds, start });
  const { evaluated, before } = around;
  const policy = supervisedRounds(g, { ...config, evaluated }, around.start);
  const exported = exportedModels(g, config, { policy });
  return { policy, ...exported, evaluations: [...before, ...around.after(policy)] };
});

/** The loss first, while the trainer holds the policy; then what rewards say. */
function supervisedMeasure(
  g: GraphBuilder,
  config: SupervisedConfig,
  start: Ref<Policy>,
): Measure {
  const { reward, evaluate } = config;
  const scored = reward.length > 0 || evaluate!.sets.some((set) => set.reward !== null);
  const sampled = scored ? sampledMeasure(g, config, start) : undefined;
  if (!evaluate!.loss) return sampled!; // A rule asks for a reward then.
  const opened = openedOf(g, config, "completions");
  const loss = lossMeasure(g, { ...config, opened }, start);
  return sampled ? bothMeasures(loss, sampled) : loss;
}
