import { isAbsolute, join, resolve } from "node:path";
import { InvalidInputError, PRIVATE_DIRECTORY } from "../../engine/mod.ts";

const RELATIVE = "which is not an absolute path";

type Variables = Pick<typeof Deno.env, "get">;

/**
 * The directory of the Python environments that Holdfast makes: one for all clones, homes and runs
 * of a user. HOLDFAST_ENV_DIR, or else the user's cache, as the XDG base directories say.
 * @throws {InvalidInputError} If there is none.
 */
export function environmentsDir(variables: Variables = Deno.env): string {
  const named = variables.get("HOLDFAST_ENV_DIR") || null;
  // Relative, it would be a different one in every directory that a command starts in.
  if (named !== null && !isAbsolute(named)) {
    throw refused(
      `HOLDFAST_ENV_DIR is '${named}', ${RELATIVE}`,
      "set HOLDFAST_ENV_DIR to an absolute path",
    );
  }
  if (named !== null) return resolve(named);
  const cache = variables.get("XDG_CACHE_HOME") ?? "";
  if (isAbsolute(cache)) return join(cache, "holdfast", "env");
  const home = variables.get("HOME") ?? "";
  if (isAbsolute(home)) return join(home, ".cache", "holdfast", "env");
  throw refused(
    home === "" ? "HOME is not set" : `HOME is '${home}', ${RELATIVE}`,
    "set HOLDFAST_ENV_DIR to the absolute path of a directory for them",
  );
}

/** Makes the directory if there is none, readable by its owner alone, as the XDG standard asks. */
export async function makeEnvironmentsDir(dir: string): Promise<void> {
  try {
    await Deno.mkdir(dir, { recursive: true, mode: PRIVATE_DIRECTORY });
  } catch (cause) {
    throw unwritable(dir, cause);
  }
}

/** Opens the lock of a place, which is held to make it and to remove it. */
export async function openLock(dir: string, path: string): Promise<Deno.FsFile> {
  try {
    return await Deno.open(path, { write: true, create: true });
  } catch (cause) {
    throw unwritable(dir, cause);
  }
}

function unwritable(dir: string, cause: unknown): InvalidInputError {
  return new InvalidInputError(
    `Cannot use '${dir}' for Python environments because it cannot be written: ` +
      `${(cause as Error).message}. Fix: set HOLDFAST_ENV_DIR to a directory you may write to`,
    { dir },
    { cause },
  );
}

function refused(why: string, fix: string): InvalidInputError {
  return new InvalidInputError(
    `Cannot tell where Python environments are because ${why}. Fix: ${fix}`,
    { why },
  );
}
