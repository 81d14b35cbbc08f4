/**
 * Checks an algorithm in Python before a run is created: a problem with it is bad input, not a
 * failed run.
 */
import { inPython } from "../algs/mod.ts";
import type { Config } from "../configs/mod.ts";
import { AlgorithmDescription } from "../data/mod.ts";
import { InvalidInputError } from "../engine/mod.ts";
import {
  ensureEnvironment,
  environmentOf,
  type OnEnvironmentProgress,
  runPython,
} from "../workers/mod.ts";
import { misuse, sourceOf, type Use } from "./stages/open_algorithm.ts";

/** What each training flow learns from. */
const LEARNS_FROM: Partial<Record<Config["flow"], Use["learns_from"]>> = {
  online: "rewards",
  quickstart: "rewards",
  supervised: "completions",
  preference: "pairs",
};

/**
 * If the algorithm of a configuration is a file, opens it in a process of the trainer's Python. The
 * run opens it again.
 * @throws {InvalidInputError} If it cannot be used.
 */
export async function checkAlgorithm(
  config: Config,
  options: { onSetup?: OnEnvironmentProgress } = {},
): Promise<void> {
  const learns_from = LEARNS_FROM[config.flow];
  if (learns_from === undefined || !("algorithm" in config) || !inPython(config.algorithm)) return;
  const { algorithm, trainer } = config;
  const { onSetup: onProgress } = options;
  const python = await ensureEnvironment(environmentOf(trainer), {
    user_python: trainer.python,
    onProgress,
  });
  const source = await sourceOf(algorithm);
  const described = AlgorithmDescription.parse(await describe(python, source));
  const sizes = "online" in config ? config.online : config as { samples_per_prompt?: number };
  const use = {
    learns_from,
    samples_per_prompt: sizes.samples_per_prompt ?? null,
  };
  const fault = misuse(described, algorithm, use);
  if (fault !== null) {
    throw new InvalidInputError(`Cannot use ${source.file} because ${fault}`, {
      source: algorithm.source,
    });
  }
}

async function describe(python: string, source: unknown): Promise<unknown> {
  const module = "holdfast_worker.algorithm.describe";
  const { code, stdout, stderr } = await runPython(python, {
    module,
    input: JSON.stringify(source),
  });
  // The lines above it: what the file prints.
  if (code === 0) return JSON.parse(stdout.trimEnd().split("\n").at(-1)!);
  throw new InvalidInputError(stderr.trimEnd(), { code });
}
