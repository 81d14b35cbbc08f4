import { SupervisedConfig } from "../configs/mod.ts";
import type { Policy } from "../data/mod.ts";
import { graph, type GraphBuilder, type Ref } from "../engine/mod.ts";
import { evaluations } from "./evaluate.ts";
import { openedOf } from "./open_algorithm.ts";
import { openRows, type RowsConfig } from "./open_rows.ts";
import { checkpointPolicy } from "./stages/checkpoint_policy.ts";
import { drawSupervised } from "./stages/draw_rows.ts";
import { exportPolicy } from "./stages/export_policy.ts";
import { preparePolicy } from "./stages/prepare_policy.ts";
import { trainPolicy } from "./stages/train_policy.ts";

/**
 * What the rounds of supervised training read of a configuration; the quickstart makes one from its
 * own.
 */
export type SupervisedRounds =
  & Pick<
    SupervisedConfig,
    "seed" | "rounds" | "rows_per_round" | "algorithm" | "trainer" | "checkpoints"
  >
  & RowsConfig;

/** A warm-up before another flow: one optimizer step a round, however its batches are cut. */
export const WARMUP_STEPS = { updates_per_batch: 1, epochs_per_batch: 1 };

/** Rounds over supervised rows. Returns the last policy. */
export function supervisedRounds(
  g: GraphBuilder,
  config: SupervisedRounds,
  start: Ref<Policy>,
): Ref<Policy> {
  const { seed, algorithm, rows_per_round: count, rounds: last, checkpoints } = config;
  const {
    optimizer,
    micro_batch_tokens_max,
    updates_per_batch: updates,
    epochs_per_batch: epochs,
  } = config.trainer;
  const steps = {
    ...(updates > 1 && { updates_per_batch: updates }),
    ...(epochs > 1 && { epochs_per_batch: epochs }),
  };
  const data = openRows(g, config, {
    split: "train",
    use: "completion",
    model_path: start.field("model_path"),
  });
  const opened = openedOf(g, config, "completions");
  const work = { algorithm, optimizer, micro_batch_tokens_max, ...(opened && { opened }) };
  const rounds = g.loop("step", { times: last, carry: { policy: start } }, (r) => {
    const policy = r.carried("policy");
    const batch = r.stage(drawSupervised, { data, round: r.index, count, seed, ...steps });
    const trained = r.stage(trainPolicy, { batch, policy, ...work });
    return {
      policy: r.stage(checkpointPolicy, { policy: trained, round: r.index, last, ...checkpoints }),
    };
  });
  return rounds.policy;
}

/** Supervised fine-tuning. */
export const supervised = graph("supervised", SupervisedConfig, (g, config) => {
  const start = g.stage(preparePolicy, {
    model_path: config.model.path,
    optimizer: config.trainer.optimizer,
  });
  const before = evaluations(g, { ...config, label: "before" }, start);
  const policy = supervisedRounds(g, config, start);
  const exported = g.stage(exportPolicy, { policy, name: "final" });
  const after = evaluations(g, { ...config, label: "after" }, policy);
  return { policy, exported, evaluations: [...before, ...after] };
});
