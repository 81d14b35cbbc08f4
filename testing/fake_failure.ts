/** What fake workers fail with: the same errors as the engine makes of what real ones report. */
import type { EngineError } from "../engine/mod.ts";
import { failureError, type FileProblem } from "../workers/mod.ts";
import { failureReport } from "./fake_script.ts";

/** A BadDataError that a worker raised in operation `op`, as it reaches the caller: its text decides what it counts as. */
export function badDataInWorker(message: string, op: string): EngineError {
  const report = failureReport({ cause: "bad_data", exception: "BadDataError", message });
  return failureError([report], { run: "fake", group: "fake", generation: 1, op });
}

/** The words of `verify_files` in weights.py. */
export function unreadableText(dir: string, { file, expected, found }: FileProblem): string {
  if (found === null) return `Cannot open '${dir}' because its file '${file}' is missing`;
  return `Cannot open '${dir}' because its file '${file}' is not the recorded one: sha256 is ${found}, recorded ${expected}. ` +
    "The file was changed or damaged: use another checkpoint";
}
