import { fileURLToPath } from "node:url";
import type { JournalRow, RunHead } from "../../engine/mod.ts";
import { Home } from "../../runs/mod.ts";
import { carrying } from "../processes.ts";

/**
 * Runs the command line as a user does, and looks at what a run left behind. For tests with real
 * processes.
 */
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export const SMALL = "configs/quickstart_small.yaml";

export type Shown = {
  status: string;
  epoch: number;
  policy: { version: string; digest: string };
  ledger: Record<string, unknown>;
  generated: { groups: number; samples: number; tokens: number };
  recoveries: { cause: string; action: string; batches_redone: number; seconds: number }[];
  replans: { round: number | null; cause: string; field: string; from: unknown; to: unknown }[];
  workers: {
    role: string;
    group: string;
    rank: number | null;
    pid: number | null;
    state: string;
  }[];
  engine_pid: number | null;
  round: number;
  evaluations: { name: string; avg_at_k: number; problems: number; failed: number }[];
  metrics: Record<string, number>;
};
export type Finished = { code: number; signal: string | null; output: string };

/** Where a run lives. `store`: null for the file in the home. */
export type Place = { home: string; store: string | null };

/** A command of the command line that is running. */
export type Running = { pid: number; kill(signal: Deno.Signal): void; finished: Promise<Finished> };

/**
 * `deno task rl ARGS`, without the task runner between, so that a signal reaches the engine itself.
 */
export function start(
  args: string[],
  options: { env?: Record<string, string>; within?: string[] } = {},
): Running {
  const { env = {}, within = [] } = options;
  const [command, ...rest] = [
    ...within,
    Deno.execPath(),
    "run",
    "-A",
    "--quiet",
    "cli/main.ts",
    ...args,
  ];
  const child = new Deno.Command(command!, {
    args: rest,
    cwd: ROOT,
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const finished = child.output().then(({ code, signal, stdout, stderr }) => {
    const text = new TextDecoder();
    return { code, signal, output: text.decode(stdout) + text.decode(stderr) };
  });
  return { pid: child.pid, kill: (signal) => child.kill(signal), finished };
}

/** The same, waited for. */
export async function rl(args: string[], env: Record<string, string>): Promise<Finished> {
  return await start(args, { env }).finished;
}

export async function show(home: string, run: string, store: string | null = null): Promise<Shown> {
  const { code, output } = await rl(["show", run, ...at({ home, store }), "--json"], {});
  if (code !== 0) throw new Error(`Cannot show run ${run} in ${home} (exit ${code}):\n${output}`);
  return JSON.parse(output);
}

/** The options that say where a run lives. */
export function at({ home, store }: Place): string[] {
  return ["--home", home, ...(store === null ? [] : ["--store", store])];
}

/** Calls `work` with a home of its own, which is removed once nothing of it runs any more. */
export async function withFreshHome<T>(work: (home: string) => Promise<T>): Promise<T> {
  const home = await Deno.makeTempDir({ prefix: "holdfast-crash-" });
  try {
    return await work(home);
  } finally {
    await orphans(home);
    await Deno.remove(home, { recursive: true });
  }
}

/** What the store holds of a run, without a command between. */
export async function recorded(
  place: Place,
  run: string,
): Promise<{ head: RunHead; rows: JournalRow[] }> {
  const home = Home.open(place.home, { store: place.store });
  try {
    const head = await home.store.head(run);
    if (!head) throw new Error(`Cannot read run ${run} because there is none in ${place.home}`);
    return { head, rows: await home.store.read(run) };
  } finally {
    await home.close();
  }
}

/** Groups whose generation was asked for and not delivered: what a kill of the engine may cost. */
export function inFlight(rows: JournalRow[]): number {
  const delivered = new Set(
    rows.filter(({ kind }) => kind === "note/generated").map(({ key }) => key),
  );
  return generations(rows).filter(({ key }) => !delivered.has(key)).reduce(
    (sum, { groups }) => sum + groups,
    0,
  );
}

/** Groups of the largest slab: what the loss of one sampler may cost. */
export function largestSlab(rows: JournalRow[]): number {
  return Math.max(0, ...generations(rows).map(({ groups }) => groups));
}

function generations(rows: JournalRow[]): { key: string; groups: number }[] {
  return rows.filter(({ kind }) => kind === "note/generation")
    .map(({ key, value }) => ({ key, groups: (JSON.parse(value) as { groups: number }).groups }));
}

/**
 * Processes that still carry this home in their environment; waits a minute at most for the last
 * of them.
 */
export async function orphans(home: string): Promise<number> {
  const deadline = performance.now() + 60_000; // Never reached but by a process that stays.
  const mark = `HOLDFAST_ARTIFACTS=${await Deno.realPath(home)}/`;
  let carriers = await carrying(mark);
  while (carriers.length > 0 && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    carriers = await carrying(mark);
  }
  return carriers.length;
}
