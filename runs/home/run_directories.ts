/** Which run owns the directories `runs/RUN`, `checkpoints/RUN` and `logs/RUN` of a home. */
import { existsSync, lstatSync } from "node:fs";
import {
  type DirectoryOwner,
  InvalidInputError,
  isOwnedBy,
  isUnused,
  makeDirectory,
  ownerOf,
  RUN_FOLDERS,
  type RunHead,
  writeOwner,
} from "../../engine/mod.ts";
import { homeNonce } from "../../workers/mod.ts";
import type { Home } from "./home.ts";

/**
 * @throws {InvalidInputError} If the run was recorded in a different home, which has its files.
 */
export async function refuseOtherHome(home: Home, { id, home: recorded }: RunHead): Promise<void> {
  const here = await home.identity();
  if (recorded === null || recorded === here) return;
  throw new InvalidInputError(
    `Cannot work on run '${id}' in ${home.dir} because its files are in a different home: this ` +
      `home is ${here}, the run's is ` +
      `${recorded}. Fix: name the run's home with --home`,
    { run: id, home: here, recorded },
  );
}

/**
 * @throws {InvalidInputError} If a run has this id already, or the directories of a new one contain
 * foreign files or cannot be created.
 */
export async function refuseUsed(home: Home, owner: DirectoryOwner): Promise<void> {
  if (await home.store.head(owner.run) !== null) {
    throw new InvalidInputError(
      `Cannot create run '${owner.run}' because it already exists: choose a different --id`,
      { run: owner.run },
    );
  }
  for (const folder of RUN_FOLDERS) {
    makeDirectory(`${home.dir}/${folder}`);
    const dir = `${home.dir}/${folder}/${owner.run}`;
    const found = ownerOf(dir);
    const ours = found !== null && isOwnedBy(found, owner, { home: home.dir, folder });
    // A fork that was killed before its run was recorded has left links.
    const free = isUnused(dir) || (ours && folder === "checkpoints");
    if (!free || (found !== null && !ours)) throw belongsTo(dir, { owner, found });
  }
}

/**
 * Writes the owner into the run's directories before anything else is written there. A directory
 * with files that has lost its owner is left unchanged, and nothing in it will be removed: it may
 * have changed places with another run's. `make`: also creates missing directories.
 * @throws {InvalidInputError} If one of them belongs to another run.
 */
export async function claimDirectories(
  home: Home,
  head: RunHead,
  { make }: { make: boolean },
): Promise<void> {
  const owner = await home.owner(head.id);
  for (const folder of RUN_FOLDERS) {
    const dir = `${home.dir}/${folder}/${head.id}`;
    const found = ownerOf(dir);
    if (
      found !== null && !isOwnedBy(found, owner, { home: home.dir, folder }) &&
      !await hasMoved(found, owner)
    ) {
      throw belongsTo(dir, { owner, found });
    }
    if ((found?.home === owner.home && found.place === owner.place) || isLink(dir)) continue;
    if (found === null && !isUnused(dir)) continue;
    if (make || existsSync(dir)) writeOwner(dir, owner);
  }
}

/** Nothing is written or removed behind a foreign link. */
function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

/**
 * Whether it belongs to the same run and the home was only moved: for a copy, the original home
 * still exists.
 */
async function hasMoved(found: DirectoryOwner, owner: DirectoryOwner): Promise<boolean> {
  if (found.store !== owner.store || found.run !== owner.run || found.home !== owner.home) {
    return false;
  }
  return !existsSync(`${found.place}/nonce`) || await homeNonce(found.place) !== found.home;
}

type Belonging = { owner: DirectoryOwner; found: DirectoryOwner | null };

function belongsTo(dir: string, { owner, found }: Belonging): InvalidInputError {
  const whose = found === null
    ? "it contains files of a run that is not in this journal"
    : `it belongs to run '${found.run}' of ${found.place}, recorded in journal ${found.store}`;
  return new InvalidInputError(
    `Cannot use ${dir} for run '${owner.run}' because ${whose}. Fix: choose another --id, ` +
      "or move the directory away",
    { dir, run: owner.run, found },
  );
}
