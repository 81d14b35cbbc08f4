import { type AlgorithmChoice, inPython, type OpenedAlgorithm } from "../algs/mod.ts";
import type { GraphBuilder, Ref } from "../engine/mod.ts";
import { openAlgorithm } from "./stages/open_algorithm.ts";

/** An algorithm in Python as stages receive it; undefined: the algorithm is in the table. */
export type Opened = Ref<OpenedAlgorithm> | undefined;

/** @internal */
type Choosing = {
  algorithm: AlgorithmChoice;
  trainer: { updates_per_batch: number; epochs_per_batch: number };
  samples_per_prompt?: number;
  /** If it is already open. */
  opened?: Opened;
};

/**
 * Opens the algorithm if it is a file, once for all rounds. An algorithm in the table needs only
 * its configuration.
 */
export function openedOf(
  g: GraphBuilder,
  { algorithm, trainer, samples_per_prompt, opened }: Choosing,
  learns_from: "rewards" | "completions" | "pairs",
): Opened {
  if (opened || !inPython(algorithm)) return opened;
  const { updates_per_batch, epochs_per_batch } = trainer;
  const use = {
    learns_from,
    samples_per_prompt: samples_per_prompt ?? null,
  };
  return g.stage(openAlgorithm, {
    algorithm,
    use,
    updates_per_batch: updates_per_batch * epochs_per_batch,
  });
}
