import type { RunHead } from "../../engine/mod.ts";
import {
  ensureEnvironment,
  environmentKind,
  environmentOf,
  type EnvironmentOptions,
  existingEnvironment,
} from "../../workers/mod.ts";
import type { Home } from "../home/home.ts";
import { currentConfig } from "./settings.ts";
import { workerBlocks } from "./worker_blocks.ts";

/** Who receives the progress of an environment, and what ends its creation. */
type CreationProgress = Pick<EnvironmentOptions, "onProgress" | "signal">;

/**
 * The interpreter of a configuration's trainer: the user's own if it names one. Without a trainer
 * it is the managed one with PyTorch.
 * @throws {InvalidInputError | InfrastructureError} If it cannot be used or created.
 */
export async function trainerPython(
  config: Record<string, unknown>,
  progress: CreationProgress = {},
): Promise<string> {
  const trainer = workerBlocks(config)?.trainer;
  const kind = trainer ? environmentOf(trainer) : environmentKind("torch");
  return await ensureEnvironment(kind, { user_python: trainer?.python, ...progress });
}

/** The same of a run, with the settings that resumes have changed. */
export async function trainerPythonOf(
  home: Home,
  head: RunHead,
  progress: CreationProgress = {},
): Promise<string> {
  return await trainerPython(await currentConfig(home.store, head), progress);
}

/**
 * An interpreter that can fetch a configuration's models: the trainer's if it is there. Else a small
 * one: neither a fetch nor a wrong name costs PyTorch.
 * @throws {InvalidInputError | InfrastructureError} If it cannot be used or created.
 */
export async function fetchingPython(
  config: Record<string, unknown>,
  progress: CreationProgress = {},
): Promise<string> {
  const trainer = workerBlocks(config)?.trainer;
  if (trainer?.python) return await trainerPython(config, progress);
  const existing = trainer
    ? await existingEnvironment(environmentOf(trainer), { signal: progress.signal })
    : null;
  return existing ?? await ensureEnvironment("hub", progress);
}
