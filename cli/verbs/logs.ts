import { computedStatus, InvalidInputError, systemClock } from "../../engine/mod.ts";
import { findRun, type Home, newestRun } from "../../runs/mod.ts";
import { FollowedLog, isNewestPart, lastLines } from "../log_file.ts";
import { print, printJson } from "../display/output.ts";
import { defineVerb } from "../verb.ts";
import { ARGUMENTS } from "../arguments.ts";
import { flag, json, whole } from "../options.ts";

/** `logs [RUN]`: the last lines of every worker's log, or with `--follow` all that comes. */
export const logsVerb = defineVerb({
  name: "logs",
  about: "show the workers' logs",
  arguments: { "[run]": ARGUMENTS.run },
  options: {
    json,
    lines: whole("<n>", "lines to show from the end of each log", { default: 20 }),
    attempt: whole("<n>", "show an earlier attempt of the run"),
    follow: flag("print every log from its start, then new lines until the run ends"),
  },
  action: ({ args: { run }, flags, globals }) =>
    globals.withHome((home) => flags.follow ? followLogs(home, run) : showLogs(home, run, flags)),
});

type LogsFlags = { json?: boolean; lines: number; attempt?: number };

/** Prints the last lines of each worker's newest log, or of one attempt's logs. */
async function showLogs(
  home: Home,
  id: string | undefined,
  options: LogsFlags,
): Promise<void> {
  const head = await findRun(home, id ?? await newestRun(home));
  const dir = home.logsDir(head.id);
  const { attempt = null } = options;
  const paths = attempt === null
    ? newestOfEach(await allLogs(dir))
    : await logsIn(home.logDir(head.id, attempt));
  if (paths.length === 0) {
    const why = attempt === null
      ? "none of its workers has started"
      : `attempt ${attempt} has no logs: try without --attempt`;
    throw new InvalidInputError(`Cannot show logs of '${head.id}' because ${why} (${dir})`, {
      dir,
      attempt,
    });
  }
  const logs = await Promise.all(
    paths.map(async (path) => ({ path, lines: await lastLines(path, options.lines) })),
  );
  if (options.json) return printJson({ run: head.id, attempt, dir, logs });
  for (const { path, lines } of logs) print([`==> ${path} <==`, ...lines, ""].join("\n"));
}

/**
 * The logs of the newest attempt that has one of that name: a worker that outlived its engine keeps
 * writing to its first log.
 */
function newestOfEach(paths: string[]): string[] {
  // Oldest attempt first.
  const newest = new Map(paths.map((path) => [path.slice(path.lastIndexOf("/") + 1), path]));
  return [...newest.values()];
}

const FOLLOW_MS = 500;

/**
 * Prints a run's logs and what any engine adds to them, until the run has ended or no engine
 * executes it.
 */
async function followLogs(home: Home, id: string | undefined): Promise<void> {
  const run = (await findRun(home, id ?? await newestRun(home))).id;
  const shown = new Map<string, FollowedLog>();
  for (;;) {
    const status = computedStatus((await home.store.head(run))!); // Must precede the logs.
    for (const path of await allLogs(home.logsDir(run))) {
      if (!shown.has(path)) shown.set(path, new FollowedLog(path));
      const place = path.split("/").slice(-2).join("/");
      for await (const line of shown.get(path)!.added()) print(`${place}: ${line}`);
    }
    if (status !== "running" && status !== "queued") return;
    await systemClock.sleep(FOLLOW_MS);
  }
}

/** Logs of every attempt, the oldest first. */
async function allLogs(dir: string): Promise<string[]> {
  const attempts = await Array.fromAsync(Deno.readDir(dir)).catch(() => []);
  const number = (name: string) => Number(name.slice(name.lastIndexOf("_") + 1));
  const dirs = attempts.filter(({ isDirectory }) => isDirectory).map(({ name }) => name).toSorted((
    a,
    b,
  ) => number(a) - number(b));
  return (await Promise.all(dirs.map((name) => logsIn(`${dir}/${name}`)))).flat();
}

async function logsIn(dir: string): Promise<string[]> {
  try {
    const entries = await Array.fromAsync(Deno.readDir(dir));
    return entries.filter(({ isFile, name }) => isFile && isNewestPart(name)).map((entry) =>
      `${dir}/${entry.name}`
    )
      .toSorted();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
