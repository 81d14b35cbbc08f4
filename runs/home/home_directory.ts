/** Which directory can be a home, and that nobody else can write to it. */
import { chmodSync, existsSync, lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { parse, resolve } from "node:path";
import { InvalidInputError } from "../../engine/mod.ts";

/** Folders that every home has. Only its owner may read them. */
export const HOME_FOLDERS = ["runs", "artifacts", "checkpoints", "logs"];
/** The SQLite journal, and what SQLite keeps beside it. */
export const JOURNAL_FILES = ["", "-wal", "-shm"].map((part) => `holdfast.db${part}`);

/** Permission of other users to write. */
const OTHERS_WRITE = 0o022;

/**
 * The absolute path of a home.
 * @throws {InvalidInputError} If it names no directory, or the root of the file system.
 */
export function homeDirectory(dir: string): string {
  const home = resolve(dir);
  const isEmpty = dir.trim() === "";
  if (!isEmpty && home !== parse(home).root) return home;
  const why = isEmpty ? "it names no directory" : "it is the root of the file system";
  throw new InvalidInputError(
    `Cannot use '${isEmpty ? dir : home}' as the home because ${why}. Fix: give the directory of ` +
      "your runs with --home, such as .holdfast",
    { home: dir },
  );
}

type Users = {
  /** The user who owns a path itself, not what it links to; undefined if it is missing. */
  uidOf?: (path: string) => number | undefined;
  /** The user of this process. */
  user?: number | null;
};

/**
 * Takes a home from others who may write to it: they could replace its journal, which names what a
 * resume runs. True: they could. A directory of other files is not changed.
 * @throws {InvalidInputError} If a part of it belongs to a different user, or others may write to
 * it and it belongs to a different user or also has files that belong to no home. That includes a
 * volume of root whose group may write: nothing tells a container's volume, whose group has no other
 * members, from the directory that a group of people shares.
 */
export function takeHome(home: string, { uidOf = uid, user = Deno.uid() }: Users = {}): boolean {
  const found = statSync(home, { throwIfNoEntry: false });
  if (!found?.isDirectory()) return false;
  const owner = uidOf(realpathSync(home));
  // Root, and the owner of the directory, can replace everything in it anyway.
  refuseOthersParts(home, { trusted: [user, uidOf(home), 0], uidOf });
  if ((found.mode & OTHERS_WRITE) === 0) return false;
  const isHome = existsSync(`${home}/holdfast.db`) || existsSync(`${home}/nonce`);
  if (owner === user && (isHome || readdirSync(home).length === 0)) {
    chmodSync(home, found.mode & 0o7777 & ~OTHERS_WRITE);
    return true;
  }
  const inside = `name a new directory in it with --home '${home}/holdfast'`;
  const mayChange = owner === user || user === 0;
  throw new InvalidInputError(
    `Cannot use '${home}' as the home because other users can write to it, and a resume runs what ` +
      `its record names. Fix: ${mayChange ? `chmod go-w '${home}', or ${inside}` : inside}`,
    { home },
  );
}

/** Who owns a file can write to it, whatever its directory permits. */
function refuseOthersParts(
  home: string,
  { trusted, uidOf }: { trusted: readonly unknown[]; uidOf: (path: string) => number | undefined },
): void {
  for (const name of [...JOURNAL_FILES, ...HOME_FOLDERS, "nonce", "stores", "cache"]) {
    const path = `${home}/${name}`;
    const owner = uidOf(path);
    if (owner === undefined || trusted.includes(owner)) continue;
    throw new InvalidInputError(
      `Cannot use '${home}' as the home because ${name} in it belongs to user ${owner}, and a ` +
        "resume runs what its record names. Fix: name a new directory with --home; if you trust " +
        `that user, chown '${path}'`,
      { home },
    );
  }
}

function uid(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.uid;
}
