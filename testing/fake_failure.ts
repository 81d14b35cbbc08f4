/** What fake workers fail with: the same errors as the engine makes of what real ones report. */
import type { EngineError } from "../engine/mod.ts";
import {
  type Checkpoint,
  failureError,
  type FileProblem,
  firstProblem,
  type Publication,
} from "../workers/mod.ts";
import { failureReport } from "./fake_script.ts";
import { digestOf, read } from "./fake_weights.ts";

/**
 * A BadDataError that a worker raised in operation `op`, as it reaches the caller: its text decides
 * what it counts as.
 */
function badDataInWorker(message: string, op: string): EngineError {
  const report = failureReport({ cause: "bad_data", exception: "BadDataError", message });
  return failureError([report], { run: "fake", group: "fake", generation: 1, op });
}

/** The words of `verify_files` in weights.py. */
function unreadableText(dir: string, { file, expected, found }: FileProblem): string {
  if (found === null) return `Cannot open '${dir}' because its file '${file}' is missing`;
  return `Cannot open '${dir}' because its file '${file}' is not the recorded one: sha256 is ` +
    `${found}, recorded ${expected}. ` +
    "The file was changed or damaged: use another checkpoint";
}

/** As the real workers do before they read. */
export async function checkFiles({ dir, files }: Checkpoint | Publication): Promise<void> {
  const problem = await firstProblem(dir, files);
  if (problem) throw badDataInWorker(unreadableText(dir, problem), "load");
}

/** As the real trainer does before it opens a model directory. */
export async function checkModel(dir: string, recorded: string | null): Promise<void> {
  const found = digestOf(await read(dir));
  if (recorded === null || recorded === found) return;
  throw badDataInWorker(
    `Cannot open model '${dir}' because its weights differ from those that the run recorded: ` +
      "their digest is " +
      `${found.slice(0, 12)}, recorded ${recorded.slice(0, 12)}. Fix: restore the recorded weights`,
    "load",
  );
}
