import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { InvalidInputError, type RunHead } from "../engine/mod.ts";
import { type OnEnvironmentProgress, PYTHON_ROOT, workerEnvironment } from "../workers/mod.ts";
import { baseOpening } from "./session/base_opening.ts";
import type { Home } from "./home/home.ts";
import { trainerPythonOf } from "./session/trainer_python.ts";

type MergeOptions = {
  /** The directory to write; null: `final_merged` beside the run's `final`. */
  target: string | null;
  onSetup?: OnEnvironmentProgress;
};

/**
 * Merges the adapter that a run has exported into its base model, in a process of the run's
 * Python. Returns its exit code; the run is not touched.
 * @throws {InvalidInputError} If the run has no adapter, or the directory cannot be written.
 */
export async function mergeAdapter(
  home: Home,
  head: RunHead,
  { target, onSetup }: MergeOptions,
): Promise<number> {
  const { id } = head;
  const final = `${home.dir}/runs/${id}/final`;
  const merged = target ?? `${home.dir}/runs/${id}/final_merged`;
  const why = whyNot(final, merged);
  if (why !== null) {
    throw new InvalidInputError(`Cannot merge the adapter of run '${id}' because ${why}`, {
      merged,
    });
  }
  const opening = JSON.stringify(await baseOpening(home, head));
  const python = await trainerPythonOf(home, head, { onProgress: onSetup });
  const child = new Deno.Command(python, {
    args: ["-m", "holdfast_worker.trainer.model.merge_adapter", final, merged, opening],
    clearEnv: true,
    env: { ...workerEnvironment(), PYTHONPATH: PYTHON_ROOT, OMP_NUM_THREADS: "1" },
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).spawn();
  return (await child.status).code;
}

/** Why nothing can be merged; null: it can. */
function whyNot(final: string, merged: string): string | null {
  if (!existsSync(final)) return `it has not exported a model: '${final}' is missing`;
  if (!existsSync(`${final}/adapter_config.json`)) {
    return `'${final}' is a whole model already, which needs no merge`;
  }
  if (existsSync(merged)) {
    return `'${merged}' exists. Fix: remove it, or name a different one with --to DIR`;
  }
  if (!existsSync(dirname(merged))) return `'${dirname(merged)}' is missing. Fix: create it`;
  return null;
}
