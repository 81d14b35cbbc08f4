import { dirname, join } from "node:path";
import process from "node:process";
import { z } from "zod";
import { PRIVATE_FILE, readDerivedJson } from "../../engine/mod.ts";
import { processStart } from "../processes/process_sweep.ts";

const /** @internal */ workerStateSchema = z.strictObject({
  role: z.string(),
  group: z.string(),
  generation: z.int(),
  rank: z.int().nullable(),
  pid: z.int().nullable(),
  state: z.string(),
});
/** What `show` says about one rank, or about a group without ranks. */
export type WorkerState = z.infer<typeof workerStateSchema>;
/** Schema of {@linkcode WorkerState}. */
export const WorkerState: typeof workerStateSchema = workerStateSchema;

const WorkersFile = z.strictObject({
  engine_pid: z.int(),
  engine_start: z.string(),
  workers: z.array(WorkerState),
});

/** Worker states of a run whose engine may be another process; empty if that engine is gone. */
export function readWorkerStates(home: string, run: string): WorkerState[] {
  const { data: file } = WorkersFile.safeParse(readDerivedJson(workersFile(home, run)));
  if (file === undefined) return [];
  const alive = file.engine_pid === process.pid ||
    processStart(file.engine_pid) === file.engine_start;
  return alive ? file.workers : [];
}

/** Leaves this engine's worker states where `readWorkerStates` of another process finds them. */
export async function writeWorkerStates(
  workers: WorkerState[],
  { home, run }: { home: string; run: string },
): Promise<void> {
  const engine_start = processStart(process.pid) ?? "";
  await writeJson(workersFile(home, run), { engine_pid: process.pid, engine_start, workers });
}

function workersFile(home: string, run: string): string {
  return join(home, "runs", run, "workers.json");
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await Deno.mkdir(dirname(path), { recursive: true });
  await Deno.writeTextFile(`${path}.new`, JSON.stringify(value) + "\n", { mode: PRIVATE_FILE });
  await Deno.rename(`${path}.new`, path);
}
