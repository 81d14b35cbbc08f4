import { basename } from "node:path";
import {
  type Amount,
  InvalidInputError,
  ownerAlive,
  reachableArtifacts,
  removeRows,
  type RunHead,
  sweepArtifacts,
} from "../engine/mod.ts";
import { ASIDE, VersionChain } from "../workers/mod.ts";
import { type CollectableRows, collectableRows, descendants, hasEnded } from "./collectable_rows.ts";
import type { Home } from "./home.ts";
import { residentRows } from "./lineage.ts";
import { unlessMissing } from "./unless_missing.ts";

export type GcOptions = {
  /** Runs whose files, and with `rows` whose rows, are looked at; all by default. Artifacts are everybody's. */
  runs?: readonly string[];
  dry_run?: boolean;
  /** Also rows, versions and batches of ended runs that no checkpoint, fork or open round can reach. */
  rows?: boolean;
  /** Logs of a run's attempts but the newest, older than this. */
  logs_older_than_ms?: number;
  /** What is younger stays: somebody may be about to record it. */
  younger_than_ms?: number;
  now_ms?: number;
};

/** What went, or with `dry_run` would go; and what was asked for and stays. */
export type GcReport = {
  artifacts: Amount;
  publications: Amount;
  checkpoints: Amount;
  logs: Amount;
  rows: Amount;
  /** Of all files, and of the rows' text. */
  bytes: number;
  kept: { run: string; what: string; why: string }[];
};

/** A put, a checkpoint or a publication takes less from its first byte to its row. */
export const YOUNG_MS = 3_600_000;
const LEASE_MS = 60_000;
/** Folders of a run with weights that were written out, and the rows that name them by version. */
const WEIGHTS = [["publications", "note/publication"], ["references", "note/reference"]] as const;
const PUBLICATION = /^\.?[0-9a-f]{16}(\.tmp)?$/;

/**
 * Removes what nothing can reach: artifacts that no row refers to, files of attempts that came to nothing, publications of
 * ended runs, and what the options ask for. A run with a living engine is left alone, and so is everything that was put since
 * it began. Killed at any moment, it loses nothing; the next one finishes.
 * @throws {InvalidInputError} If a run is not there, or the home's artifacts belong to a journal that was not opened too.
 */
export async function collectGarbage(home: Home, options: GcOptions = {}): Promise<GcReport> {
  const stores = [home.store, ...home.otherStores()];
  try {
    const heads = (await Promise.all(stores.map((store) => store.heads()))).flat();
    const runs = chosen(await home.store.heads(), options.runs);
    const collecting = new Collection(home, { heads, options });
    if (options.rows) await collecting.rows(runs);
    for (const head of runs) await collecting.files(head);
    if (options.runs === undefined) await collecting.strayCheckpoints();
    return await collecting.artifacts(stores);
  } finally {
    for (const store of stores.slice(1)) await store.close();
  }
}

function chosen(heads: readonly RunHead[], ids: readonly string[] | undefined): readonly RunHead[] {
  if (ids === undefined || ids.length === 0) return heads;
  return ids.map((id) => {
    const head = heads.find((known) => known.id === id);
    if (head) return head;
    throw new InvalidInputError(`Cannot collect run '${id}' as there is none of that id`, { run: id });
  });
}

/** One that nobody can see is taken for alive: an owner that is late, but not superseded, keeps working. */
function isLive({ owner }: RunHead): boolean {
  return owner !== null && ownerAlive(owner) !== "dead";
}

class Collection {
  readonly #home: Home;
  readonly #heads: readonly RunHead[];
  readonly #options: GcOptions;
  readonly #before_ms: number;
  readonly #now_ms: number;
  readonly #report: GcReport;

  constructor(home: Home, { heads, options }: { heads: readonly RunHead[]; options: GcOptions }) {
    const { now_ms = Date.now(), younger_than_ms = YOUNG_MS } = options;
    this.#home = home;
    this.#heads = heads;
    this.#options = options;
    this.#now_ms = now_ms;
    this.#before_ms = now_ms - younger_than_ms;
    const none = () => ({ count: 0, bytes: 0 });
    const amounts = { artifacts: none(), publications: none(), checkpoints: none(), logs: none(), rows: none() };
    this.#report = { ...amounts, bytes: 0, kept: [] };
  }

  /** Forks before what they were forked from: they may need less afterwards. */
  async rows(runs: readonly RunHead[]): Promise<void> {
    const { store, artifacts } = this.#home;
    const going = new Map<string, ReadonlySet<number>>();
    const ordered = [...runs].sort((a, b) => descendants(this.#heads, a).length - descendants(this.#heads, b).length);
    for (const head of ordered) {
      if (!hasEnded(head) || isLive(head)) {
        this.#keep(
          head,
          "rows",
          `the run is ${isLive(head) ? "another process's" : head.status}: it may be gone on with`,
        );
        continue;
      }
      const heads = await store.heads();
      const plan = await collectableRows({ store, artifacts, heads, going }, head);
      for (const [loop, { round, why }] of Object.entries(plan.from)) {
        this.#keep(head, `${loop}/${round} and later`, why);
      }
      if (plan.seqs.length === 0) continue;
      if (!this.#options.dry_run && !await this.#removeRows(head, plan)) continue;
      going.set(head.id, new Set(plan.seqs));
      this.#count("rows", { count: plan.seqs.length, bytes: plan.bytes });
    }
  }

  async #removeRows(head: RunHead, { seqs, from, forks }: CollectableRows): Promise<boolean> {
    const { store } = this.#home;
    const holds = async () => descendants(await store.heads(), head).every(({ id }) => forks.includes(id));
    const told = { kept_from: Object.fromEntries(Object.entries(from).map(([loop, { round }]) => [loop, round])) };
    const removed = await removeRows(store, head.id, { lease_ms: LEASE_MS, seqs, told, holds });
    if (!removed) this.#keep(head, "rows", "it was forked just now: try again");
    return removed;
  }

  /** A run's directories. */
  async files(head: RunHead): Promise<void> {
    if (isLive(head)) return this.#keep(head, "files", "its engine lives");
    await this.#publications(head);
    await this.#checkpoints(head);
    await this.#logs(head);
  }

  /** A publication, or a reference's weights, can be written again; a run that has ended does not need them. */
  async #publications(head: RunHead): Promise<void> {
    for (const [folder, kind] of WEIGHTS) {
      const dir = `${this.#home.runDir(head.id)}/${folder}`;
      const recorded = await this.#home.store.read(head.id, { kinds: [kind] });
      const wanted = new Set(hasEnded(head) ? [] : recorded.map(({ key }) => key.slice(0, 16)));
      for (const name of await names(dir)) {
        if (PUBLICATION.test(name) && !wanted.has(name)) await this.#remove("publications", `${dir}/${name}`);
      }
    }
  }

  /** What was begun and never recorded, or dropped and not yet gone. Damaged ones stay for people to look at. */
  async #checkpoints(head: RunHead): Promise<void> {
    const dir = this.#home.checkpointsDir(head.id);
    const rows = await residentRows(this.#home.store, head);
    const chain = new VersionChain(this.#home.artifacts, rows.map((row) => ({ ...row, value: JSON.parse(row.value) })));
    const aside = rows.filter(({ kind }) => kind === "note/checkpoint_set_aside");
    const dirs = [...chain.checkpoints(), ...aside.map(({ value }) => JSON.parse(value) as { dir: string })];
    const kept = new Set([ASIDE, ...dirs.map((one) => basename(one.dir))]);
    for (const name of await names(dir)) if (!kept.has(name)) await this.#remove("checkpoints", `${dir}/${name}`);
  }

  async #logs(head: RunHead): Promise<void> {
    const { logs_older_than_ms } = this.#options;
    if (logs_older_than_ms === undefined) return;
    const dir = `${this.#home.dir}/logs/${head.id}`;
    const attempts = (await names(dir)).filter((name) =>
      /^attempt_\d+$/.test(name) && name !== `attempt_${head.epoch}`
    );
    for (const name of attempts) await this.#remove("logs", `${dir}/${name}`, this.#now_ms - logs_older_than_ms);
  }

  /** Links of a fork that was killed before its run was recorded. */
  async strayCheckpoints(): Promise<void> {
    const known = new Set(this.#heads.map(({ id }) => id));
    const dir = `${this.#home.dir}/checkpoints`;
    for (const name of await names(dir)) {
      const begun = (await names(this.#home.runDir(name))).length > 0;
      if (!known.has(name) && !begun) await this.#remove("checkpoints", `${dir}/${name}`);
    }
  }

  async artifacts(stores: Parameters<typeof reachableArtifacts>[0]): Promise<GcReport> {
    const { artifacts } = this.#home;
    const { dry_run } = this.#options;
    const reachable = await reachableArtifacts(stores, artifacts);
    // Bodies that run now may hold what they put and have not returned yet.
    const begun = this.#heads.filter(isLive).map(({ created_ms }) => created_ms);
    const before_ms = Math.min(this.#before_ms, ...begun);
    this.#count("artifacts", await sweepArtifacts(artifacts, { reachable, before_ms, dry_run }));
    return this.#report;
  }

  #keep(head: RunHead, what: string, why: string): void {
    this.#report.kept.push({ run: head.id, what, why });
  }

  async #remove(
    what: Exclude<keyof GcReport, "bytes" | "kept">,
    path: string,
    before_ms = this.#before_ms,
  ): Promise<void> {
    const { bytes, newest_ms } = await measure(path);
    if (newest_ms >= before_ms) return;
    if (!this.#options.dry_run) await Deno.remove(path, { recursive: true }).catch(unlessMissing);
    this.#count(what, { count: 1, bytes });
  }

  #count(what: Exclude<keyof GcReport, "bytes" | "kept">, { count, bytes }: Amount): void {
    this.#report[what].count += count;
    this.#report[what].bytes += bytes;
    this.#report.bytes += bytes;
  }
}

/** Bytes of all files of a path, those with other links left out, and the youngest change among them. */
async function measure(path: string): Promise<{ bytes: number; newest_ms: number }> {
  const found = await Deno.lstat(path).catch(unlessMissing);
  if (!found) return { bytes: 0, newest_ms: 0 };
  const own = {
    bytes: found.isFile && found.nlink === 1 ? found.size : 0,
    newest_ms: found.mtime?.getTime() ?? Infinity,
  };
  if (!found.isDirectory) return own;
  const below = await Promise.all((await names(path)).map((name) => measure(`${path}/${name}`)));
  return {
    bytes: below.reduce((sum, { bytes }) => sum + bytes, 0),
    newest_ms: Math.max(own.newest_ms, ...below.map(({ newest_ms }) => newest_ms)),
  };
}

async function names(dir: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(dir), ({ name }) => name).catch(unlessMissing);
  return (entries ?? []).sort();
}
