/**
 * An artifact is removed if no journal refers to it, so a journal that was lost or is not open must
 * not be treated as one without references.
 */
import {
  type DirectoryOwner,
  InvalidInputError,
  isRunId,
  ownerOf,
  RUN_FOLDERS,
  type Store,
  type StoreIdentity,
  type UnreachableArtifact,
} from "../engine/mod.ts";
import type { Home } from "./home.ts";
import { unlessMissing } from "../flows/mod.ts";

/** The clocks of a file system and a store on one machine differ by at most this. */
const CLOCKS_APART_MS = 1000;

type Opened = { identity: StoreIdentity; runs: ReadonlySet<string> };

/**
 * @throws {InvalidInputError} If there are artifacts without references, and another home shares
 * the directory, or a journal of this home is not open, lacks a run that has files here, or is
 * younger than the artifacts.
 */
export async function refuseLostJournal(
  home: Home,
  { stores, lost }: { stores: readonly Store[]; lost: readonly UnreachableArtifact[] },
): Promise<void> {
  // Nothing is at risk: everything else that is removed belongs to a run in a journal.
  if (lost.length === 0) return;
  const opened = await Promise.all(stores.map(async (store): Promise<Opened> => ({
    identity: await store.identity(),
    runs: new Set((await store.heads()).map(({ id }) => id)),
  })));
  const why = await otherHome(home) ?? closedJournal(home, opened) ?? unknownRun(home, opened) ??
    olderArtifact(opened, lost);
  if (why === null) return;
  throw new InvalidInputError(
    `Cannot tell which of ${lost.length} artifacts in '${home.dir}' are still needed ` +
      `because ${why}`,
    { home: home.dir, artifacts: lost.length },
  );
}

async function otherHome(home: Home): Promise<string | null> {
  const [place] = await home.artifactSharers();
  if (place === undefined) return null;
  return `the home ${place} stores artifacts in the same directory. Fix: give each home a ` +
    "separate artifacts/; if that home no longer " +
    `exists, remove its line from ${home.artifacts.dir}/homes`;
}

function closedJournal(home: Home, opened: readonly Opened[]): string | null {
  const closed = home.knownStores().find(({ id, where }) =>
    id === null ? where !== home.where : opened.every(({ identity }) => identity.id !== id)
  );
  if (!closed) return null;
  const { id, where } = closed;
  return `runs in ${where}${
    id === null ? "" : ` (journal ${id})`
  } keep files here too, and that journal is not open. Fix: name ` +
    `it with --store, or restore ${where} from a copy; if it no longer exists, remove its ` +
    `line from ${home.dir}/stores and ` +
    "move the files of its runs out of runs/";
}

function entries(dir: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(dir)];
  } catch (error) {
    return unlessMissing(error) ?? [];
  }
}

/**
 * A directory whose name differs from its owner's is a copy. One in `checkpoints/` or `logs/`
 * counts if it names a journal that is not open: a killed fork leaves a directory that is not in
 * its own journal.
 */
function unknownRun(home: Home, opened: readonly Opened[]): string | null {
  for (const folder of RUN_FOLDERS) {
    for (const { name, isDirectory } of entries(`${home.dir}/${folder}`)) {
      if (!isDirectory || !isRunId(name)) continue;
      const dir = `${home.dir}/${folder}/${name}`;
      const owner = ownerOf(dir);
      if (owner === null ? folder !== "runs" : owner.run !== name) continue;
      const mayKnow = opened.filter(({ identity }) =>
        owner === null || identity.id === owner.store
      );
      const known = folder === "runs"
        ? mayKnow.some(({ runs }) => runs.has(name))
        : mayKnow.length > 0;
      if (!known) return unknownText(dir, owner);
    }
  }
  return null;
}

function unknownText(dir: string, owner: DirectoryOwner | null): string {
  return `${dir} belongs to a run that is in no open journal${
    owner === null ? "" : ` (its journal is ${owner.store})`
  }. ` +
    "Fix: restore the journal from a copy, or name it with --store; if it no longer exists, " +
    "move that directory away";
}

function olderArtifact(
  opened: readonly Opened[],
  lost: readonly UnreachableArtifact[],
): string | null {
  const since_ms = Math.min(...opened.map(({ identity }) => identity.since_ms)) - CLOCKS_APART_MS;
  const older = lost.find(({ changed_ms }) => changed_ms < since_ms);
  if (!older) return null;
  const at = (ms: number) => new Date(ms).toISOString();
  return `${older.path}, of ${at(older.changed_ms)}, is older than the journal, of ${
    at(since_ms)
  }. Fix: restore the journal that ` +
    "it was recorded in; if that no longer exists, remove the older files of artifacts/ by hand";
}
