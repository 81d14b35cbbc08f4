/**
 * A file is removed if no journal names it, so a journal that was lost, is older than the files or
 * is not open must not be treated as one without references.
 */
import { relative } from "node:path";
import {
  type DirectoryOwner,
  InvalidInputError,
  isRunId,
  ownerOf,
  RUN_FOLDERS,
  type RunHead,
  sha256Hex,
  type Store,
  type StoreIdentity,
  type UnreachableArtifact,
} from "../../engine/mod.ts";
import type { Home } from "../home/home.ts";
import { livingRuns } from "./living_engines.ts";
import { unlessMissing } from "../../flows/mod.ts";
import { type JournalMark, journalMarks, UNKNOWN } from "./journal_marks.ts";

type Opened = { identity: StoreIdentity; runs: ReadonlyMap<string, RunHead> };

type Collectable = {
  stores: readonly Store[];
  /** Read before the journals, which only grow. */
  marks: readonly JournalMark[];
  /** Runs whose engine was alive before the files were listed: the list omits what it may need. */
  living: readonly RunHead[];
  /** Artifacts that no row refers to. */
  lost: readonly UnreachableArtifact[];
  /** Paths of everything that would be removed, however young, if these runs lost rows. */
  files: (behind: ReadonlySet<string>) => Promise<Listed>;
  /** Only the files of these runs are removed; all by default. */
  runs?: readonly string[];
  /** The code of the list that a person has accepted. */
  accept?: string;
};

/** `runs`: those of the home's journal whose directories were searched. */
type Listed = { paths: readonly string[]; runs: ReadonlySet<string> };

/** Paths that an error shows. */
const SHOWN_MAX = 10;

/** `marks`: to be lowered once the paths are gone, because an engine may continue its run then. */
type Accepted = { paths: ReadonlySet<string>; marks: readonly JournalMark[] };

/**
 * What `accept` gives up.
 * @throws {InvalidInputError} If there are files that no journal names, and another home shares the
 * artifacts, or a journal of this home is not open, lacks a run that has files here, or ends
 * before rows that its run had recorded. The last three can be accepted for exactly these files,
 * while no engine of the home lives.
 */
export async function refuseLostJournal(
  home: Home,
  options: Collectable,
): Promise<Accepted> {
  const { stores, lost, marks, accept } = options;
  const opened = await Promise.all(stores.map(async (store): Promise<Opened> => ({
    identity: await store.identity(),
    runs: new Map((await store.heads()).map((head) => [head.id, head])),
  })));
  // Files of a run are only removed if its journal names the run.
  const closed = lost.length === 0 ? null : await otherHome(home) ?? closedJournal(home, opened);
  if (closed !== null) {
    throw new InvalidInputError(
      `Cannot tell which of ${lost.length} artifacts in '${home.dir}' are still needed ` +
        `because ${closed}`,
      { home: home.dir, artifacts: lost.length },
    );
  }
  const behind = marks.filter((mark) => isBehind(mark, opened));
  const why = (lost.length === 0 ? null : unknownRun(home, opened)) ?? lostRows(behind, opened);
  if (why === null) return { paths: new Set(), marks: [] };
  const { id } = await home.store.identity();
  const ofHere = behind.filter(({ store }) => store === id).map(({ run }) => run);
  const { paths, runs } = await options.files(new Set(ofHere));
  const files = paths.map((path) => relative(home.dir, path)).sort();
  const code = sha256Hex(files.join("\n")).slice(0, 12);
  // Also engines that started meanwhile.
  const heads = opened.flatMap((journal) => [...journal.runs.values()]);
  const [living] = [...options.living, ...await livingRuns(home, heads)];
  const isRefused = living
    ? files.length > 0 || accept !== undefined
    : files.length > 0 && accept !== code;
  if (isRefused) throw notNamed(home, { why, files, code, living });
  const accepted = new Set(paths);
  // While an engine lives, the marks still protect what it keeps out of the list.
  if (living) return { paths: accepted, marks: [] };
  // The others still protect files that are in no list.
  const listed = behind.filter((mark) =>
    headOf(mark, opened) ? mark.store === id && runs.has(mark.run) : options.runs === undefined
  );
  return { paths: accepted, marks: listed };
}

type NotNamed = {
  why: string;
  files: readonly string[];
  code: string;
  /** A run whose engine lives. */
  living: RunHead | undefined;
};

function notNamed(home: Home, { why, files, code, living }: NotNamed): InvalidInputError {
  const shown = files.slice(0, SHOWN_MAX).map((path) => `  ${path}`);
  const more = files.length - shown.length;
  const next = living
    ? `They cannot be given up while ${engineOf(living)} works, because this list lacks ` +
      "artifacts that may be its own. Fix: stop it, then run the same command again for the whole " +
      `list; if its machine is gone, resume run '${living.id}' and stop it, or cancel it`
    : `To give up exactly these files, run the same command with --accept ${code}`;
  const which = files.length > 0 ? `which of ${files.length} files` : "which files";
  const text = `Cannot tell ${which} in '${home.dir}' are still needed because no journal names ` +
    `them, and ${why}. ${next}${files.length > 0 ? ":" : ""}`;
  return new InvalidInputError(
    [text, ...shown, ...(more > 0 ? [`  and ${more} more`] : [])].join("\n"),
    { home: home.dir, files: files.length, run: living?.id, accept: living ? undefined : code },
  );
}

function engineOf({ id, owner }: RunHead): string {
  return `the engine of run '${id}' (process ${owner?.pid} on ${owner?.host})`;
}

/** Whether what the mark says was recorded is in no open journal. */
function isBehind(mark: JournalMark, opened: readonly Opened[]): boolean {
  return (headOf(mark, opened)?.last_seq ?? -1) < mark.seq;
}

function headOf({ store, run }: JournalMark, opened: readonly Opened[]): RunHead | undefined {
  return opened.find(({ identity }) => identity.id === store)?.runs.get(run);
}

function lostRows([mark]: readonly JournalMark[], opened: readonly Opened[]): string | null {
  if (mark === undefined) return null;
  const { store, run, seq } = mark;
  const journal = opened.find(({ identity }) => identity.id === store);
  const fix = "Fix: restore the newest copy of the journal, or name the right one with --store";
  if (store === UNKNOWN.store) {
    return "its artifacts were put before this home's first run, into a journal that is not known. " +
      fix;
  }
  if (!journal) {
    return `artifacts were put by run '${run}' of journal ${store}, which is not open. ${fix}`;
  }
  const last = headOf(mark, opened)?.last_seq;
  return `the open journal ${
    last === undefined ? `lacks run '${run}'` : `ends at row ${last} of run '${run}'`
  }, which had recorded row ${seq}: it is an older copy. ${fix}`;
}

/**
 * Also before a run is created, whose lost namesake may have left artifacts.
 * @throws {InvalidInputError} If the run had recorded more than its journal has now: continuing
 * would replace the files of what came later.
 */
export async function refuseOlderJournal(home: Home, run: string): Promise<void> {
  const marks = await journalMarks(home);
  const { id } = await home.store.identity();
  const head = await home.store.head(run);
  const last_seq = head?.last_seq ?? 0;
  const behind = marks.find((mark) => mark.store === id && mark.run === run && mark.seq > last_seq);
  if (!behind) return;
  const [cannot, why, fix] = head
    ? ["continue", `it ends at row ${last_seq}, and the run`, "Fix: "]
    : ["create", "it lacks this run, which", "Fix: choose a different --id; or "];
  throw new InvalidInputError(
    `Cannot ${cannot} run '${run}' because its journal is an older copy: ${why} had recorded row ` +
      `${behind.seq}. ${fix}restore the newest copy of the journal; to give up what came later, ` +
      "run `deno task rl gc`, which lists its files and says how to accept",
    { run, last_seq, recorded: behind.seq },
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
