import { computedStatus, InvalidInputError, systemClock } from "../engine/mod.ts";
import type { Home } from "../flows/mod.ts";
import { print, printJson } from "./output.ts";
import { findRun, newestRun } from "./runs.ts";

export type LogsFlags = { json?: boolean; lines: number; attempt?: number; follow?: boolean };

const NEWLINE = 10;

/** `logs RUN`: the last lines of every worker's newest log, or of one attempt's logs, and where they lie. */
export async function showLogs(
  home: Home,
  id: string | undefined,
  options: LogsFlags,
): Promise<void> {
  const head = await findRun(home, id ?? await newestRun(home));
  const dir = `${home.dir}/logs/${head.id}`;
  const { attempt = null } = options;
  const paths = attempt === null ? newestOfEach(await allLogs(dir)) : await logsIn(home.logDir(head.id, attempt));
  if (paths.length === 0) {
    const why = attempt === null ? "no worker of it has started" : `attempt ${attempt} has none: try without --attempt`;
    throw new InvalidInputError(`Cannot show logs of '${head.id}' as ${why} (${dir})`, { dir, attempt });
  }
  const logs = await Promise.all(paths.map(async (path) => {
    const text = await Deno.readTextFile(path);
    return { path, lines: text.trimEnd().split("\n").slice(-options.lines) };
  }));
  if (options.json) return printJson({ run: head.id, attempt, dir, logs });
  for (const { path, lines } of logs) print([`==> ${path} <==`, ...lines, ""].join("\n"));
}

/** The logs of the newest attempt that has one of that name: a worker that outlived its engine goes on writing where it began. */
function newestOfEach(paths: string[]): string[] {
  const newest = new Map(paths.map((path) => [path.slice(path.lastIndexOf("/") + 1), path])); // Oldest attempt first.
  return [...newest.values()];
}

const FOLLOW_MS = 500;

/** Prints a run's logs and what is added to them, by whatever engine, until the run has ended or stands still. */
export async function followLogs(home: Home, id: string | undefined): Promise<void> {
  const run = (await findRun(home, id ?? await newestRun(home))).id;
  const shown = new Map<string, number>();
  for (;;) {
    const status = computedStatus((await home.store.head(run))!); // Before the look: its last lines count.
    for (const path of await allLogs(`${home.dir}/logs/${run}`)) await printAdded(path, shown);
    if (status !== "running" && status !== "queued") return;
    await systemClock.sleep(FOLLOW_MS);
  }
}

/** Logs of every attempt, the oldest first. */
async function allLogs(dir: string): Promise<string[]> {
  const attempts = await Array.fromAsync(Deno.readDir(dir)).catch(() => []);
  const number = (name: string) => Number(name.slice(name.lastIndexOf("_") + 1));
  const dirs = attempts.map(({ name }) => name).toSorted((a, b) => number(a) - number(b));
  return (await Promise.all(dirs.map((name) => logsIn(`${dir}/${name}`)))).flat();
}

/** Whole lines only; the rest is shown when its end is there. */
async function printAdded(path: string, shown: Map<string, number>): Promise<void> {
  const from = shown.get(path) ?? 0;
  const file = await Deno.open(path);
  await file.seek(from, Deno.SeekMode.Start);
  const bytes = new Uint8Array(await new Response(file.readable).arrayBuffer());
  const whole = bytes.lastIndexOf(NEWLINE) + 1;
  if (whole === 0) return;
  shown.set(path, from + whole);
  const place = path.split("/").slice(-2).join("/");
  const lines = new TextDecoder().decode(bytes.subarray(0, whole)).trimEnd().split("\n");
  print(lines.map((line) => `${place}: ${line}`).join("\n"));
}

async function logsIn(dir: string): Promise<string[]> {
  try {
    const entries = await Array.fromAsync(Deno.readDir(dir));
    return entries.filter((entry) => entry.isFile).map((entry) => `${dir}/${entry.name}`).toSorted();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
