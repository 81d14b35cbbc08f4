/**
 * How far the journal of a run had got, kept beside the run's files and beside the artifacts: shows
 * a journal that was lost, or replaced by an older copy. File times say nothing: copies change them.
 */
import { existsSync, lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import {
  type DirectoryOwner,
  type EngineEvent,
  InvalidInputError,
  isNamed,
  isOwnedBy,
  JOURNAL_FILE,
  makeDirectory,
  ownerOf,
  PRIVATE_FILE,
  readDerivedJson,
  removeTree,
  RunId,
} from "../../engine/mod.ts";
import { namesIn } from "../home/names_in.ts";
import type { Home } from "../home/home.ts";

const JournalMark = z.strictObject({
  store: z.string().describe("Identity of the journal."),
  run: RunId,
  seq: z.int().nonnegative().describe("A row of the run that was durable when this was written."),
});
export type JournalMark = z.infer<typeof JournalMark>;

/** In the directory of artifacts: a mark of each run that has put artifacts there. */
const MARKS = "journals";
const MARKED_FOLDERS = ["runs", "checkpoints"] as const;
/** A mark for artifacts that were there before any journal that the home knows. */
export const UNKNOWN: JournalMark = { store: "unknown", run: "unknown", seq: 0 };

/**
 * Raises a run's marks to what its journal has now. `lower`: also lowers them, if a person has
 * accepted that what came later is lost.
 * @throws {InvalidInputError} If one cannot be written because something else is in its place. The
 * others are.
 */
export async function markJournal(home: Home, run: string, { lower = false } = {}): Promise<void> {
  const head = await home.store.head(run);
  if (head === null) return;
  const mark = { store: (await home.store.identity()).id, run, seq: head.last_seq };
  const write = (path: string) => {
    const known = readMark(path);
    const isOlder = known?.store === mark.store && known.run === run && known.seq > mark.seq;
    if (lower || !isOlder) writeMark(path, mark);
  };
  const blocked: unknown[] = [];
  for (const path of [...await placesOf(home, mark), artifactsMark(home, mark)]) {
    try {
      write(path);
    } catch (error) { // The others are written first.
      blocked.push(error);
    }
  }
  if (blocked.length > 0) throw blocked[0];
}

/** The paths of the marks in a run's directories, except those that are links or not its own. */
async function placesOf(
  home: Home,
  { store, run }: Pick<JournalMark, "store" | "run">,
): Promise<string[]> {
  const wanted = { ...await home.owner(run), store };
  return MARKED_FOLDERS.filter((folder) => {
    const dir = join(home.dir, folder, run);
    const found = ownerOf(dir);
    const isOurs = found !== null && isOwnedBy(found, wanted, { home: home.dir, folder });
    return isOurs && !lstatSync(dir).isSymbolicLink();
  }).map((folder) => join(home.dir, folder, run, JOURNAL_FILE));
}

/** Rows that name files which `gc` would otherwise take for leftovers. */
const FILES = new Set(["note/checkpoint", "note/publication", "note/reference"]);

/** Marks a run whenever its engine has recorded files or closed a round, and at its end. */
export class JournalMarking {
  readonly #home: Home;
  readonly #run: string;
  readonly #say: (text: string) => void;
  #tail: Promise<void> = Promise.resolve();

  /** `say` receives why a mark could not be written, which costs protection, never the run. */
  constructor(home: Home, { run, say }: { run: string; say: (text: string) => void }) {
    this.#home = home;
    this.#run = run;
    this.#say = say;
  }

  on(event: EngineEvent): void {
    const names = event.type === "note" && FILES.has(event.kind);
    if (names || event.type === "round_closed") void this.mark();
  }

  /** Settles when the marks have what was recorded before the call. */
  mark(): Promise<void> {
    return this.#tail = this.#tail.then(() => markJournal(this.#home, this.#run))
      .catch((error: Error) => this.#say(`The journal was not marked: ${error.message}`));
  }
}

/**
 * The paths of marks in the directories of the home's runs, of any journal. A run's directory with
 * the name of a different run is a copy, and a home that links to a folder of this one has
 * directories there.
 */
async function ownedPlaces(home: Home): Promise<{ path: string; owner: DirectoryOwner }[]> {
  const id = await home.identity();
  const found: { path: string; owner: DirectoryOwner }[] = [];
  for (const folder of MARKED_FOLDERS) {
    for (const run of await namesIn(join(home.dir, folder))) {
      const dir = join(home.dir, folder, run);
      const owner = ownerOf(dir);
      if (owner?.home !== id || owner.run !== run) continue;
      const path = join(dir, JOURNAL_FILE);
      if ((await placesOf(home, owner)).includes(path)) found.push({ path, owner });
    }
  }
  return found;
}

/** All marks of a home: what is read can be lowered. */
export async function journalMarks(home: Home): Promise<JournalMark[]> {
  const found = (await ownedPlaces(home)).map(({ path, owner }) => {
    const mark = readMark(path);
    return mark?.run === owner.run && mark.store === owner.store ? mark : null;
  });
  const dir = join(home.artifacts.dir, MARKS);
  for (const name of await namesIn(dir)) {
    if (name.endsWith(".json")) found.push(readMark(join(dir, name)));
  }
  const marks = found.filter((mark) => mark !== null);
  return await hasUnknownArtifacts(home) ? [...marks, UNKNOWN] : marks;
}

/**
 * Before a home's first run: artifacts that are there already belong to a journal that nobody knows.
 */
export async function markUnknownArtifacts(home: Home): Promise<void> {
  if (!await hasUnknownArtifacts(home)) return;
  writeMark(artifactsMark(home, UNKNOWN), UNKNOWN);
}

/**
 * After a person has accepted that what these journals recorded is lost, or if nothing of it is
 * left: the marks become what the open journals have.
 */
export async function acceptMarks(home: Home, lost: readonly JournalMark[]): Promise<void> {
  const { id } = await home.store.identity();
  for (const mark of lost) {
    const isKnown = mark.store === id && await home.store.head(mark.run) !== null;
    if (isKnown) await markJournal(home, mark.run, { lower: true });
    else await removeMark(home, mark);
  }
}

/** The directories still say that the run was recorded: they are no leftovers of a killed fork. */
async function removeMark(home: Home, mark: JournalMark): Promise<void> {
  const { id } = await home.store.identity();
  const places = mark.store === id ? await placesOf(home, mark) : [];
  for (const path of places) writeMark(path, { ...mark, seq: 0 });
  await removeTree(artifactsMark(home, mark), { home: home.dir, named: /.*\.json/, owner: null });
}

/** Removes what processes left that were killed while they wrote a mark. */
export async function sweepMarks(home: Home, before_ms: number): Promise<void> {
  const ofArtifacts = { dir: join(home.artifacts.dir, MARKS), owner: null, mark: /.*\.json/ };
  const ofRuns = (await ownedPlaces(home)).map(({ path, owner }) => ({
    dir: dirname(path),
    owner,
    mark: /journal\.json/,
  }));
  for (const { dir, owner, mark } of [ofArtifacts, ...ofRuns]) {
    const named = new RegExp(`${mark.source}\\.[0-9a-f-]{36}`);
    for (const name of await namesIn(dir)) {
      const path = join(dir, name);
      const found = lstatSync(path, { throwIfNoEntry: false });
      if (!isNamed(name, named) || !found?.isFile() || found.mtimeMs >= before_ms) continue;
      await removeTree(path, { home: home.dir, named, owner });
    }
  }
}

/** Also before the first mark is written. */
async function hasUnknownArtifacts(home: Home): Promise<boolean> {
  const { dir } = home.artifacts;
  if (existsSync(join(dir, MARKS)) || (await home.store.heads()).length > 0) return false;
  const { id } = await home.store.identity();
  if (home.knownStores().some((known) => known.id === id)) return false;
  const folders = (await namesIn(dir)).filter((name) => /^[0-9a-f]{2}$/.test(name));
  const files = await Promise.all(folders.map((name) => namesIn(join(dir, name))));
  return files.flat().length > 0;
}

function artifactsMark(home: Home, { store, run }: JournalMark): string {
  return join(home.artifacts.dir, MARKS, `${run}.${store}.json`);
}

function readMark(path: string): JournalMark | null {
  return JournalMark.safeParse(readDerivedJson(path)).data ?? null;
}

/** A reader sees the old mark or the new one. */
function writeMark(path: string, mark: JournalMark): void {
  makeDirectory(dirname(path));
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    const text = `Cannot write ${path}: a directory is there. Fix: remove it`;
    throw new InvalidInputError(text, { path });
  }
  const fresh = `${path}.${crypto.randomUUID()}`;
  Deno.writeTextFileSync(fresh, `${JSON.stringify(mark)}\n`, { mode: PRIVATE_FILE });
  Deno.renameSync(fresh, path);
}
