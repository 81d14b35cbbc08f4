/** What recorded rows can reach, and removing the artifacts that they cannot. */
import { lstatSync, readdirSync } from "node:fs";
import { dirname } from "node:path";
import { type ArtifactRef, type ArtifactStore, TEMPORARY } from "../files/artifacts.ts";
import { makeDirectory } from "../files/directory_owner.ts";
import { RemovalRefusedError } from "../errors.ts";
import { isNamed, removeTree } from "../files/removal.ts";
import type { Store } from "../stores/store.ts";

/** Their number, and their size in bytes. */
export type Amount = { count: number; bytes: number };
/** What a sweep removed, and the directories of files that it must not remove, with the reason. */
type Swept = Amount & { refused: { dir: string; why: string }[] };

/** Rows that are read at once. */
const PAGE_ROWS = 5000;
/**
 * An artifact's name where text or MessagePack refers to it: `"sha256":"..."`. A version's id is
 * also such a name, but not a reference by itself: anything that needs the version's record refers
 * to that.
 */
const REFERENCE = /sha256[^0-9a-f]{1,12}([0-9a-f]{64})(?![0-9a-f])/g;

/**
 * Names of all artifacts that rows of these stores refer to, directly or through other artifacts.
 * @throws {LostRecordError} If one of them cannot be read.
 */
export async function reachableArtifacts(
  stores: readonly Store[],
  artifacts: ArtifactStore,
): Promise<Set<string>> {
  const found = new Set<string>();
  const open: string[] = [];
  const take = (text: string) => {
    for (const [, name] of text.matchAll(REFERENCE)) {
      if (found.has(name!)) continue;
      found.add(name!);
      open.push(name!);
    }
  };
  for (const store of stores) {
    for (const { id } of await store.heads()) {
      for await (const { value } of allRows(store, id)) take(value);
    }
  }
  const latin1 = new TextDecoder("latin1"); // Any bytes are text in it.
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const bytes = await artifacts.readUnchecked(name);
    if (bytes !== null) take(latin1.decode(bytes));
  }
  return found;
}

/**
 * Reads an artifact and everything that it refers to.
 * @throws {LostRecordError} If one of them is missing, torn or altered.
 */
export async function checkReferred(artifacts: ArtifactStore, ref: ArtifactRef): Promise<void> {
  await artifacts.check(ref);
  const found = new Set([ref.sha256]);
  for (const name of found) { // A set's loop sees what is added to it.
    const bytes = await artifacts.readNamed(name);
    for (const [, below] of new TextDecoder("latin1").decode(bytes).matchAll(REFERENCE)) {
      found.add(below!);
    }
  }
}

async function* allRows(store: Store, run: string) {
  for (let after_seq = 0;;) {
    const rows = await store.read(run, { after_seq, limit: PAGE_ROWS });
    yield* rows;
    if (rows.length < PAGE_ROWS) return;
    after_seq = rows.at(-1)!.seq;
  }
}

type SweepOptions = {
  reachable: ReadonlySet<string>;
  /** Younger artifacts stay: something may be about to refer to them. */
  before_ms: number;
  /** Paths that are removed however young they are. */
  accepted?: ReadonlySet<string>;
  dry_run?: boolean;
  /** Called with the path of each file that was removed, or would be. */
  onRemoved?: (path: string) => void;
};

/**
 * Removes artifacts that were put before a moment and cannot be reached. An artifact that is put
 * again meanwhile stays: putting renews its file, so it is first moved aside and then checked once
 * more. The next sweep finishes one that was killed. Nothing is removed through a link.
 */
export async function sweepArtifacts(
  artifacts: ArtifactStore,
  { reachable, before_ms, accepted, dry_run = false, onRemoved }: SweepOptions,
): Promise<Swept> {
  const removed = { count: 0, bytes: 0 };
  const refused = new Map<string, string>();
  const goes = (path: string, changed_ms: number) =>
    changed_ms < before_ms || accepted?.has(path) === true;
  const take = async (path: string, { bytes, changed_ms, named, aside }: Taken) => {
    if (!goes(path, changed_ms)) return;
    if (aside && !dry_run) makeDirectory(dirname(aside.path));
    const still = (moved: string) => look(moved)?.changed_ms === changed_ms;
    const how = { home: dirname(artifacts.dir), owner: null, named, aside, still, dry_run };
    try {
      if (!await removeTree(path, how)) return;
      removed.count++;
      removed.bytes += bytes;
      onRemoved?.(path);
    } catch (error) {
      if (!(error instanceof RemovalRefusedError)) throw error;
      refused.set(dirname(path), error.message);
    }
  };
  if (!dry_run) restoreReachable(artifacts, reachable);
  for (const { path, name, bytes, changed_ms } of unreachableArtifacts(artifacts, reachable)) {
    const aside = { path: asideOf(artifacts, name), named: TEMPORARY };
    await take(path, { bytes, changed_ms, named: ARTIFACT, aside });
  }
  for (const entry of list(`${artifacts.dir}/tmp`)) {
    const path = `${artifacts.dir}/tmp/${entry}`;
    const found = look(path);
    if (found && isNamed(entry, TEMPORARY)) await take(path, { ...found, named: TEMPORARY });
  }
  return { ...removed, refused: [...refused].map(([dir, why]) => ({ dir, why })) };
}

type Taken = {
  bytes: number;
  changed_ms: number;
  named: RegExp;
  aside?: { path: string; named: RegExp };
};

/** `changed_ms`: when it was last put. */
export type UnreachableArtifact = { path: string; name: string; bytes: number; changed_ms: number };

/** Artifacts of a store that are not reachable. Files with other names are left alone. */
export function* unreachableArtifacts(
  { dir }: ArtifactStore,
  reachable: ReadonlySet<string>,
): Generator<UnreachableArtifact> {
  for (const folder of list(dir).filter((name) => /^[0-9a-f]{2}$/.test(name))) {
    for (const name of list(`${dir}/${folder}`)) {
      if (!isNamed(name, ARTIFACT) || reachable.has(name)) continue;
      const path = `${dir}/${folder}/${name}`;
      const found = look(path);
      if (found) yield { path, name, ...found };
    }
  }
}

const ARTIFACT = /[0-9a-f]{64}/;
const ASIDE = "gc.";
const asideOf = ({ dir }: ArtifactStore, name: string) => `${dir}/tmp/${ASIDE}${name}`;

/** Restores what a killed sweep had moved aside and is now reachable. */
function restoreReachable(artifacts: ArtifactStore, reachable: ReadonlySet<string>): void {
  for (const entry of list(`${artifacts.dir}/tmp`)) {
    const name = entry.slice(ASIDE.length);
    if (!entry.startsWith(ASIDE) || !reachable.has(name)) continue;
    const [from, to] = [asideOf(artifacts, name), artifacts.path({ sha256: name, bytes: 0 })];
    if ([from, to].every((path) => isDirectory(dirname(path)))) Deno.renameSync(from, to);
  }
}

/** A file's size and age; null if it is gone or not a file. */
function look(path: string): { bytes: number; changed_ms: number } | null {
  try {
    const { mtime, size, isFile } = Deno.lstatSync(path);
    return isFile ? { bytes: size, changed_ms: mtime?.getTime() ?? Infinity } : null;
  } catch (error) {
    return unlessMissing(error) ?? null;
  }
}

/** Not a link to one: what is behind a link may be another home's. */
function isDirectory(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir).sort();
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return [];
    throw error;
  }
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}
