import { realpathSync } from "node:fs";
import { delimiter, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { InvalidInputError, type RunHead } from "../../engine/mod.ts";

/** Directories, separated as in PATH, whose files may be executed for the runs of a store. */
const ROOTS_VARIABLE = "HOLDFAST_ENTRY_ROOTS";

/**
 * The module that a run's head names. Anyone with access may have written to a store, so only files
 * are executed, and only files in directories that the user has chosen: the current directory, this
 * project's, and `HOLDFAST_ENTRY_ROOTS`.
 * @throws {InvalidInputError} Before anything of a module that is not allowed is read.
 */
export async function importEntry(head: RunHead): Promise<Record<string, unknown>> {
  const url = head.entry.replace(/#.*$/, "");
  const path = fileOf(url);
  if ("problem" in path) throw refused(head, path.problem);
  const roots = allowedRoots();
  const allowed = roots.some((root) =>
    path.real.startsWith(root.endsWith(sep) ? root : root + sep)
  );
  if (!allowed) throw refused(head, `${path.real} is in none of ${roots.join(", ")}`);
  return await import(url);
}

/** Where the file is after resolving links: a link is outside if its target is. */
function fileOf(url: string): { real: string } | { problem: string } {
  if (!/^file:/i.test(url)) return { problem: `'${url.slice(0, 100)}' is not a file` };
  try {
    return { real: realpathSync(fileURLToPath(url)) };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

function allowedRoots(): string[] {
  const project = import.meta.url.startsWith("file:")
    ? [fileURLToPath(new URL("../..", import.meta.url))]
    : [];
  const named = (Deno.env.get(ROOTS_VARIABLE) ?? "").split(delimiter).filter(Boolean);
  return [...new Set([Deno.cwd(), ...project, ...named].flatMap(existing))];
}

function existing(directory: string): string[] {
  try {
    return [realpathSync(directory)];
  } catch { // One that is not there holds no module.
    return [];
  }
}

function refused({ id, entry }: RunHead, why: string): InvalidInputError {
  return new InvalidInputError(
    `Cannot load the graph of run '${id}' from its entry: ${why}. Fix: run this in the ` +
      "directory that holds the module, " +
      `or name that directory in ${ROOTS_VARIABLE} if you trust the author of the run`,
    { run: id, entry },
  );
}
