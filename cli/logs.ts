import { InvalidInputError } from "../engine/mod.ts";
import type { Home } from "../flows/mod.ts";
import { print, printJson } from "./output.ts";
import { findRun, newestRun } from "./runs.ts";

/** `logs RUN`: the last lines of every worker's log of the newest attempt, or where they lie. */
export async function showLogs(
  home: Home,
  id: string | undefined,
  options: { json?: boolean; lines: number; attempt?: number },
): Promise<void> {
  const head = await findRun(home, id ?? await newestRun(home));
  const attempt = options.attempt ?? head.epoch;
  const dir = home.logDir(head.id, attempt);
  const files = await logFiles(dir);
  if (files.length === 0) {
    throw new InvalidInputError(`Cannot show logs of '${head.id}' as ${dir} has none: try --attempt N`, { dir });
  }
  const logs = await Promise.all(files.map(async (name) => {
    const text = await Deno.readTextFile(`${dir}/${name}`);
    return { path: `${dir}/${name}`, lines: text.trimEnd().split("\n").slice(-options.lines) };
  }));
  if (options.json) return printJson({ run: head.id, attempt, dir, logs });
  for (const { path, lines } of logs) print([`==> ${path} <==`, ...lines, ""].join("\n"));
}

async function logFiles(dir: string): Promise<string[]> {
  try {
    const entries = await Array.fromAsync(Deno.readDir(dir));
    return entries.filter((entry) => entry.isFile).map((entry) => entry.name).toSorted();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
