import { basename } from "node:path";
import {
  type Amount,
  checkJournal,
  type DirectoryOwner,
  hasEnded,
  InvalidInputError,
  isNamed,
  isRunId,
  JOURNAL_FILE,
  ownerOf,
  reachableArtifacts,
  RemovalRefusedError,
  removeRows,
  removeTree,
  REMOVING,
  RUN_ID,
  type RunHead,
  type Store,
  sweepArtifacts,
  unreachableArtifacts,
} from "../../engine/mod.ts";
import { type CollectableRows, collectableRows, descendants } from "./collectable_rows.ts";
import { creation } from "../home/creation.ts";
import type { Home } from "../home/home.ts";
import { strayCheckpoints } from "./leftovers.ts";
import { isLive, livingRuns, runsOf } from "./living_engines.ts";
import { acceptMarks, journalMarks, sweepMarks } from "./journal_marks.ts";
import { refuseLostJournal } from "./lost_journal.ts";
import { OWN_NAMES, unlessMissing } from "../../flows/mod.ts";
import { claimDirectories, refuseOtherHome } from "../home/run_directories.ts";
import { namesIn } from "../home/names_in.ts";

/** What is collected, and its minimum age. */
export type GcOptions = {
  /**
   * Runs whose files (and with `rows` whose rows) are collected; all by default. Artifacts belong
   * to no single run.
   */
  runs?: readonly string[];
  dry_run?: boolean;
  /** The code of a list of files that an error has shown: these may go. */
  accept?: string;
  /**
   * Also rows, versions and batches of ended runs that no checkpoint, fork or open round can reach.
   */
  rows?: boolean;
  /** Logs of a run's attempts, except the newest, that are older than this. */
  logs_older_than_ms?: number;
  /** Younger data stays, because it may be about to be recorded. */
  younger_than_ms?: number;
  now_ms?: number;
};

/** What was removed, or with `dry_run` would be; and what was requested but stays. */
export type GcReport = {
  artifacts: Amount;
  publications: Amount;
  checkpoints: Amount;
  logs: Amount;
  rows: Amount;
  /** Bytes of all files and of the rows' text. */
  bytes: number;
  /** `run`: null for artifacts, which belong to no single run. */
  kept: { run: string | null; what: string; why: string }[];
};

/** A put, a checkpoint or a publication takes less time from its first byte to its row. */
const YOUNG_MS = 3_600_000;
const LEASE_MS = 60_000;
/** Folders of a run with written weights, and the rows that name them by version. */
const WEIGHTS = [["publications", "note/publication"], ["references", "note/reference"]] as const;
const PUBLICATION = new RegExp(
  `${OWN_NAMES.weights.source}|${OWN_NAMES.unfinished_weights.source}`,
);

/**
 * Removes what nothing can reach: artifacts that no row refers to, files of failed attempts,
 * publications of ended runs, and what the options name. A run with a living engine is left alone,
 * and so is everything that was put since that run was created. If killed at any moment, it loses
 * nothing, and the next `gc` finishes the work. Runs of a different home in a shared journal, and
 * directories that belong to a different run, are left alone.
 * @throws {InvalidInputError} If a run is not there, or files belong to a journal that is not open,
 * was lost, or is older than they are, and `accept` does not name exactly these files or an engine
 * lives.
 */
export async function collectGarbage(home: Home, options: GcOptions = {}): Promise<GcReport> {
  const { artifacts } = home;
  const stores = home.stores();
  try {
    const marks = await journalMarks(home);
    const runs = await chosen(home, options.runs);
    const heads = (await Promise.all(stores.map((store) => store.heads()))).flat();
    checkJournals(heads);
    const living = await livingRuns(home, heads);
    let reachable = await reachableArtifacts(stores, artifacts);
    const scope = { runs, stores: options.runs === undefined ? stores : [] };
    const accepted = await refuseLostJournal(home, {
      stores,
      marks,
      living,
      lost: [...unreachableArtifacts(artifacts, reachable)],
      files: async (behind) => {
        const all = { dry_run: true, younger_than_ms: -Infinity };
        const dryRun = new Collection(home, { heads, living, options: all });
        // Files of a whole run are in its own rows: those that no row names are leftovers.
        const lossy = runs.filter(({ id }) => behind.has(id));
        await dryRun.collect({ ...scope, runs: lossy }, reachable);
        return { paths: dryRun.paths, runs: dryRun.searched };
      },
      ...options,
    });
    await home.rememberStore();
    const collecting = new Collection(home, { heads, living, options, accepted: accepted.paths });
    if (options.rows) {
      await collecting.rows(runs);
      reachable = await reachableArtifacts(stores, artifacts);
    }
    const report = await collecting.collect(scope, reachable);
    if (!options.dry_run) await acceptMarks(home, accepted.marks);
    return report;
  } finally {
    for (const store of stores.slice(1)) await store.close();
  }
}

/** What rows of another version refer to is not known; their own Holdfast does not know ours. */
function checkJournals(heads: readonly RunHead[]): void {
  const isMixed = heads.some(({ journal }) => journal !== heads[0]!.journal);
  try {
    for (const head of heads) checkJournal(head);
  } catch (error) {
    if (!isMixed || !(error instanceof InvalidInputError)) throw error;
    const [why] = error.message.split(". Fix: ");
    throw new InvalidInputError(
      `${why}. No Holdfast collects a home whose runs have several versions. Fix: start new runs ` +
        "in a separate home, with --home",
      error.facts,
    );
  }
}

/** The named runs, or all runs that keep their files in this home. */
async function chosen(home: Home, ids: readonly string[] | undefined): Promise<readonly RunHead[]> {
  const heads = await home.store.heads();
  if (ids === undefined || ids.length === 0) {
    return await runsOf(home, heads);
  }
  return await Promise.all(ids.map(async (id) => {
    const head = heads.find((known) => known.id === id);
    if (!head) {
      throw new InvalidInputError(`Cannot collect run '${id}' because there is no such run`, {
        run: id,
      });
    }
    await refuseOtherHome(home, head);
    return head;
  }));
}

type Removable = Exclude<keyof GcReport, "bytes" | "kept">;
type Removing = { owner: DirectoryOwner; named: RegExp; before_ms?: number };

class Collection {
  readonly #home: Home;
  readonly #heads: readonly RunHead[];
  readonly #living: readonly RunHead[];
  readonly #options: GcOptions;
  readonly #before_ms: number;
  readonly #accepted: ReadonlySet<string>;
  readonly #now_ms: number;
  readonly #report: GcReport;
  /** What was removed, or would be. */
  readonly paths: string[] = [];
  /** Runs whose directories were searched. */
  readonly searched = new Set<string>();

  /**
   * `living`: runs whose engine was alive at the beginning. `accepted`: paths that are removed
   * however young they are.
   */
  constructor(
    home: Home,
    { heads, living, options, accepted = new Set() }: {
      heads: readonly RunHead[];
      living: readonly RunHead[];
      options: GcOptions;
      accepted?: ReadonlySet<string>;
    },
  ) {
    const { now_ms = Date.now(), younger_than_ms = YOUNG_MS } = options;
    this.#home = home;
    this.#heads = heads;
    this.#living = living;
    this.#options = options;
    this.#accepted = accepted;
    this.#now_ms = now_ms;
    this.#before_ms = now_ms - younger_than_ms;
    const none = () => ({ count: 0, bytes: 0 });
    const amounts = {
      artifacts: none(),
      publications: none(),
      checkpoints: none(),
      logs: none(),
      rows: none(),
    };
    this.#report = { ...amounts, bytes: 0, kept: [] };
  }

  /** Files: of these runs, of runs that these stores never recorded, and the artifacts. */
  async collect(
    { runs, stores }: { runs: readonly RunHead[]; stores: readonly Store[] },
    reachable: ReadonlySet<string>,
  ): Promise<GcReport> {
    for (const head of runs) await this.#files(head);
    await this.#strayCheckpoints(stores);
    return await this.#artifacts(reachable);
  }

  /** Forks before their parents: they may need less afterwards. */
  async rows(runs: readonly RunHead[]): Promise<void> {
    const { store, artifacts } = this.#home;
    const going = new Map<string, ReadonlySet<number>>();
    const ordered = [...runs].sort((a, b) =>
      descendants(this.#heads, a).length - descendants(this.#heads, b).length
    );
    for (const head of ordered) {
      if (!hasEnded(head) || isLive(head)) {
        this.#keep(
          head.id,
          "rows",
          `the run is ${isLive(head) ? "another process's" : head.status}: it may be resumed`,
        );
        continue;
      }
      const heads = await store.heads();
      const plan = await collectableRows({ store, artifacts, heads, going }, head);
      for (const [loop, { round, why }] of Object.entries(plan.from)) {
        this.#keep(head.id, `${loop}/${round} and later`, why);
      }
      if (plan.seqs.length === 0) continue;
      if (!this.#options.dry_run && !await this.#removeRows(head, plan)) continue;
      going.set(head.id, new Set(plan.seqs));
      this.#count("rows", { count: plan.seqs.length, bytes: plan.bytes });
    }
  }

  async #removeRows(head: RunHead, { seqs, from, forks }: CollectableRows): Promise<boolean> {
    const { store } = this.#home;
    const holds = async () =>
      descendants(await store.heads(), head).every(({ id }) => forks.includes(id));
    const note = {
      kept_from: Object.fromEntries(Object.entries(from).map(([loop, { round }]) => [loop, round])),
    };
    const removed = await removeRows(store, head.id, { lease_ms: LEASE_MS, seqs, note, holds });
    if (!removed) this.#keep(head.id, "rows", "it was forked just now: try again");
    return removed;
  }

  /** A run's directories. */
  async #files(head: RunHead): Promise<void> {
    if (isLive(head)) return this.#keep(head.id, "files", "its engine lives");
    this.searched.add(head.id);
    try {
      await claimDirectories(this.#home, head, { make: false });
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      // The owner of one directory; each removal names its own.
      this.#keep(head.id, "files", error.message);
    }
    const owner = await this.#home.owner(head.id);
    await this.#publications(head, owner);
    await this.#checkpoints(head, owner);
    await this.#logs(head, owner);
  }

  /**
   * A publication or a reference's weights can be written again; an ended run does not need them.
   */
  async #publications(head: RunHead, owner: DirectoryOwner): Promise<void> {
    for (const [folder, kind] of WEIGHTS) {
      const dir = `${this.#home.runDir(head.id)}/${folder}`;
      const recorded = await this.#home.store.read(head.id, { kinds: [kind] });
      const wanted = new Set(hasEnded(head) ? [] : recorded.map(({ key }) => key.slice(0, 16)));
      for (const name of await namesIn(dir)) {
        if (!wanted.has(name)) {
          await this.#remove("publications", `${dir}/${name}`, { owner, named: PUBLICATION });
        }
      }
    }
    const run = this.#home.runDir(head.id); // Where a `verify` or `rescore` was killed.
    for (const name of await namesIn(run)) {
      for (const named of [OWN_NAMES.verifying, OWN_NAMES.rescoring]) {
        await this.#remove("publications", `${run}/${name}`, { owner, named });
      }
    }
  }

  /**
   * Checkpoints that were started but never recorded, or dropped but not yet removed. Damaged ones
   * stay for inspection.
   */
  async #checkpoints(head: RunHead, owner: DirectoryOwner): Promise<void> {
    for (const { path, named } of await strayCheckpoints(this.#home, head)) {
      await this.#remove("checkpoints", path, { owner, named });
    }
  }

  async #logs(head: RunHead, owner: DirectoryOwner): Promise<void> {
    const { logs_older_than_ms } = this.#options;
    if (logs_older_than_ms === undefined) return;
    const dir = this.#home.logsDir(head.id);
    const of = { owner, named: OWN_NAMES.logs, before_ms: this.#now_ms - logs_older_than_ms };
    for (const name of await namesIn(dir)) {
      if (name !== `attempt_${head.epoch}`) await this.#remove("logs", `${dir}/${name}`, of);
    }
  }

  /**
   * Links of a fork that was killed before its run was recorded: its owner is a run that is in no
   * open journal.
   */
  async #strayCheckpoints(stores: readonly Store[]): Promise<void> {
    const dir = `${this.#home.dir}/checkpoints`;
    using _ = await creation(this.#home);
    for (const store of stores) {
      const { id } = await store.identity();
      const known = new Set((await store.heads()).map((head) => head.id));
      for (const name of await namesIn(dir)) {
        if (known.has(name) || !isRunId(name) || ownerOf(`${dir}/${name}`)?.store !== id) continue;
        const begun = (await namesIn(this.#home.runDir(name))).length > 0 ||
          (await namesIn(`${dir}/${name}`)).includes(JOURNAL_FILE); // Its run was recorded.
        const owner = { ...await this.#home.owner(name), store: id };
        if (!begun) await this.#remove("checkpoints", `${dir}/${name}`, { owner, named: RUN_ID });
      }
    }
  }

  async #artifacts(reachable: ReadonlySet<string>): Promise<GcReport> {
    const { artifacts } = this.#home;
    const { dry_run } = this.#options;
    // Running bodies may hold artifacts that they have put but not yet returned.
    const begun = this.#living.map(({ created_ms }) => created_ms);
    const before_ms = Math.min(this.#before_ms, ...begun);
    const { refused, ...swept } = await sweepArtifacts(artifacts, {
      reachable,
      before_ms,
      accepted: this.#accepted,
      dry_run,
      onRemoved: (path) => this.paths.push(path),
    });
    if (!dry_run) await sweepMarks(this.#home, this.#before_ms);
    this.#count("artifacts", swept);
    for (const { dir, why } of refused) this.#keep(null, dir, why);
    return this.#report;
  }

  #keep(run: string | null, what: string, why: string): void {
    this.#report.kept.push({ run, what, why });
  }

  /**
   * Files that have foreign names or are young stay silently; files that must not be removed are
   * reported.
   */
  async #remove(
    what: Removable,
    path: string,
    { owner, before_ms = this.#before_ms, ...of }: Removing,
  ): Promise<void> {
    const named = new RegExp(`${of.named.source}|${REMOVING.source}`);
    if (!isNamed(basename(path), named)) return;
    const { bytes, newest_ms } = await measure(path);
    if (newest_ms >= before_ms && !this.#accepted.has(path)) return;
    try {
      const { dry_run } = this.#options;
      const { dir: home } = this.#home;
      if (await removeTree(path, { home, named, owner, dry_run })) {
        this.#count(what, { count: 1, bytes });
        this.paths.push(path);
      }
    } catch (error) {
      if (!(error instanceof RemovalRefusedError)) throw error;
      this.#keep(owner.run, path, error.message);
    }
  }

  #count(what: Removable, { count, bytes }: Amount): void {
    this.#report[what].count += count;
    this.#report[what].bytes += bytes;
    this.#report.bytes += bytes;
  }
}

/** Bytes of all files of a path, except those with other links, and their latest change. */
async function measure(path: string): Promise<{ bytes: number; newest_ms: number }> {
  const found = await Deno.lstat(path).catch(unlessMissing);
  if (!found) return { bytes: 0, newest_ms: 0 };
  const usage = {
    bytes: found.isFile && found.nlink === 1 ? found.size : 0,
    newest_ms: found.mtime?.getTime() ?? Infinity,
  };
  if (!found.isDirectory) return usage;
  const below = await Promise.all((await namesIn(path)).map((name) => measure(`${path}/${name}`)));
  return {
    bytes: below.reduce((sum, { bytes }) => sum + bytes, 0),
    newest_ms: Math.max(usage.newest_ms, ...below.map(({ newest_ms }) => newest_ms)),
  };
}
