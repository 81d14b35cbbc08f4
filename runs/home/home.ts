import { existsSync, lstatSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import {
  ArtifactStore,
  checkRunId,
  type DirectoryOwner,
  InvalidInputError,
  makeDirectory,
  parsePostgresUrl,
  PostgresStore,
  PRIVATE_DIRECTORY,
  PRIVATE_FILE,
  readDerivedJson,
  type RunHead,
  SqliteStore,
  type Store,
  takeFromOthers,
} from "../../engine/mod.ts";
import { homeNonce, readWorkerStates } from "../../workers/mod.ts";
import { HOME_FOLDERS, homeDirectory, JOURNAL_FILES, takeHome } from "./home_directory.ts";
import { KeptScoresFile } from "./kept_scores_file.ts";
import { lastMetrics } from "../tracking/run_metrics.ts";
import type { LiveFacts } from "../run_view.ts";

type OpenOptions = {
  /** `postgres://...`; null for the SQLite file in the home. */
  store?: string | null;
  /** Called when PostgreSQL goes away, and when it is back. */
  onNotice?: (text: string) => void;
};

/**
 * The journals that contain runs of a home, one per line: identity and place, which is
 * `holdfast.db` or a PostgreSQL address without the password.
 */
const STORES = "stores";
const STORE_LINE = /^(?:([0-9a-f-]{32,36}) )?(\S+)$/;
/** A line that may be incomplete still counts as a journal that `gc` must not forget. */
const WHOLE_STORE_LINE = /^(?:[0-9a-f-]{32,36} )?(?:holdfast\.db|postgres(?:ql)?:\S+)$/;
/**
 * A journal that contains runs of the home. `id`: its identity, null if the line is
 * torn.
 */
export type KnownStore = { id: string | null; where: string };
const isFact = (name: string) => name.endsWith(".json");
const Metrics = z.record(z.string(), z.number());
const SQLITE = "holdfast.db";
const sqliteFile = (home: string) => `${home}/${SQLITE}`;

/**
 * A file in the directory of artifacts, which may be a link: the homes that store artifacts there,
 * one per line: identity and place.
 */
const HOMES = "homes";
const HOME_LINE = /^([0-9a-f-]{36}) (.+)$/;

/**
 * A directory with the journal, the artifacts and the runs' files. Opened by commands and by
 * scripts alike.
 */
export class Home {
  /** The directory, absolute. */
  readonly dir: string;
  /** The journal of its runs. */
  readonly store: Store;
  /** Batches, rollouts and version records, addressed by content. */
  readonly artifacts: ArtifactStore;
  /** The open journal, as named in `stores`. */
  readonly where: string;
  /**
   * The PostgreSQL with this journal, as written in commands, without its password; null: SQLite.
   */
  readonly storeUrl: string | null;
  /**
   * Results of rewards that all runs of the home share.
   * @internal
   */
  readonly kept: KeptScoresFile;
  readonly #postgres: string | undefined;

  /**
   * For an open store; {@linkcode Home.open} opens one. `postgres`: the URL of the store, if it is
   * PostgreSQL.
   */
  constructor(dir: string, options: { store: Store; artifacts: ArtifactStore; postgres?: string }) {
    this.dir = dir;
    const address = options.postgres === undefined ? null : parsePostgresUrl(options.postgres);
    this.where = address ? `${address.text}?schema=${address.schema}` : SQLITE;
    this.storeUrl = address?.url ?? null;
    this.#postgres = options.postgres;
    this.store = options.store;
    this.artifacts = options.artifacts;
    this.kept = new KeptScoresFile(dir);
  }

  /**
   * Opens `dir`, which is created if missing. A PostgreSQL is connected at the first use.
   * @throws {InvalidInputError} If it cannot be a home, or other users can write to it.
   */
  static open(dir: string, { store: url = null, onNotice }: OpenOptions = {}): Home {
    const home = homeDirectory(dir);
    const postgres = url === null ? null : new PostgresStore(url, { onNotice });
    try {
      if (takeHome(home)) {
        onNotice?.(`${home}: other users could write to it. Now only you can (chmod go-w)`);
      }
      makeHome(home, onNotice);
    } catch (cause) {
      if (cause instanceof InvalidInputError) throw cause;
      throw new InvalidInputError(
        `Cannot use '${home}' as the home: ${
          (cause as Error).message
        }. Give a directory you may write to with --home`,
        { home },
        { cause },
      );
    }
    const store = postgres ?? new SqliteStore(sqliteFile(home));
    return new Home(home, {
      store,
      artifacts: new ArtifactStore(`${home}/artifacts`),
      postgres: url ?? undefined,
    });
  }

  /** Whether a URL is the one that the store was opened with, including the password. */
  isStore(url: string): boolean {
    return url === this.#postgres;
  }

  /**
   * The journals that can be opened and whose runs keep artifacts and files in this home; the open
   * one first.
   */
  stores(): Store[] {
    const file = sqliteFile(this.dir);
    return this.where !== SQLITE && existsSync(file)
      ? [this.store, new SqliteStore(file)]
      : [this.store];
  }

  /** The known journals that contain runs of this home. */
  knownStores(): KnownStore[] {
    const file = `${this.dir}/${STORES}`;
    const lines = existsSync(file) ? Deno.readTextFileSync(file).split("\n") : [];
    return lines.map((line) => STORE_LINE.exec(line)).filter((found) => found !== null)
      .map(([, id, where]) => ({ id: id ?? null, where: where! }));
  }

  /**
   * Records that runs of the open journal keep files in this home, and where this home stores its
   * artifacts: processes that open a different journal, or share the artifacts, must know.
   */
  async rememberStore(): Promise<void> {
    const { id } = await this.store.identity();
    if (!this.knownStores().some((known) => known.id === id)) {
      appendLine(`${this.dir}/${STORES}`, `${id} ${this.where}`);
    }
    const here = Deno.realPathSync(this.dir);
    if (this.#homes().some(({ place }) => place === here)) return;
    makeDirectory(this.artifacts.dir);
    appendLine(`${this.artifacts.dir}/${HOMES}`, `${await this.identity()} ${here}`);
  }

  /** The home's nonce; a lost one is restored from its journal. */
  identity(): Promise<string> {
    return homeNonce(this.dir, () => this.#recordedIdentity());
  }

  /**
   * A journal inside the home that contains runs with directories in the home belongs to this home.
   */
  async #recordedIdentity(): Promise<string | null> {
    if (
      this.where !== SQLITE ||
      lstatSync(sqliteFile(this.dir), { throwIfNoEntry: false })?.isFile() !== true
    ) {
      return null;
    }
    const heads = (await this.store.heads()).filter(({ id }) => existsSync(this.runDir(id)));
    const known = new Set(heads.map(({ home }) => home));
    return known.size === 1 ? [...known][0]! : null;
  }

  #homes(): { id: string; place: string }[] {
    const file = `${this.artifacts.dir}/${HOMES}`;
    const lines = existsSync(file) ? Deno.readTextFileSync(file).split("\n") : [];
    return lines.map((line) => HOME_LINE.exec(line)).filter((found) => found !== null)
      .map(([, id, place]) => ({ id: id!, place: place! }));
  }

  /**
   * Known paths of other homes whose artifacts are in the same directory. A missing one may have
   * moved.
   */
  async artifactSharers(): Promise<string[]> {
    const current = { id: await this.identity(), place: Deno.realPathSync(this.dir) };
    const dirOf = (place: string) =>
      existsSync(`${place}/artifacts`) ? Deno.realPathSync(`${place}/artifacts`) : null;
    const here = dirOf(current.place);
    const others = this.#homes().filter(({ place }) => place !== current.place);
    return others.filter(({ id, place }) =>
      existsSync(place) ? dirOf(place) === here : id !== current.id
    )
      .map(({ place }) => place);
  }

  /** The owner in the directories of a run of the open journal. */
  async owner(run: string): Promise<DirectoryOwner> {
    const { id: store } = await this.store.identity();
    return {
      home: await this.identity(),
      store,
      run: checkRunId(run),
      place: Deno.realPathSync(this.dir),
    };
  }

  /** A run's model, metrics and publications. */
  runDir(run: string): string {
    return `${this.dir}/runs/${checkRunId(run)}`;
  }

  /** A run's checkpoints. */
  checkpointsDir(run: string): string {
    return `${this.dir}/checkpoints/${checkRunId(run)}`;
  }

  /** Logs of all attempts at a run. */
  logsDir(run: string): string {
    return `${this.dir}/logs/${checkRunId(run)}`;
  }

  /** Logs of the attempt, the engine's n-th start at this run. */
  logDir(run: string, attempt: number): string {
    return `${this.logsDir(run)}/attempt_${attempt}`;
  }

  /** What a run's engine wrote about its workers outside the journal, and the last metrics. */
  async liveFacts(run: string): Promise<LiveFacts> {
    const head = await this.store.head(run);
    const metrics = head === null ? {} : await lastMetrics(this, head);
    return { workers: readWorkerStates(this.dir, run), metrics };
  }

  /**
   * The last value of a metric, from a file if possible, without reading the whole journal; null:
   * there is none.
   */
  async lastMetric(head: RunHead, name: string): Promise<number | null> {
    const read = Metrics.safeParse(readDerivedJson(`${this.runDir(head.id)}/metrics.json`));
    const metrics = read.success ? read.data : await lastMetrics(this, head);
    return metrics[name] ?? null;
  }

  /** Files of the home and of a run that cannot be read any more. Each is recreated or skipped. */
  damagedFacts(run: string): string[] {
    const damaged = (path: string, isWhole: (path: string) => boolean) =>
      existsSync(path) && lstatSync(path).isFile() && !isWhole(path) ? [path] : [];
    const linesOf = (path: string) => Deno.readTextFileSync(path).trimEnd().split("\n");
    const dir = this.runDir(run);
    const facts = existsSync(dir)
      ? [...Deno.readDirSync(dir)].map(({ name }) => name).filter(isFact).sort()
      : [];
    return [
      ...damaged(
        `${this.dir}/nonce`,
        (path) => /^[0-9a-f-]{36}$/.test(Deno.readTextFileSync(path).trim()),
      ),
      ...damaged(
        `${this.dir}/${STORES}`,
        (path) => linesOf(path).every((line) => WHOLE_STORE_LINE.test(line)),
      ),
      ...facts.flatMap((name) =>
        damaged(`${dir}/${name}`, (path) => readDerivedJson(path) !== null)
      ),
    ];
  }

  /** Replaces a small file of a run atomically: a reader sees the old one or the new one. */
  writeFact(run: string, options: { name: string; value: unknown }): void {
    const path = `${this.runDir(run)}/${options.name}`;
    Deno.writeTextFileSync(`${path}.new`, JSON.stringify(options.value), { mode: PRIVATE_FILE });
    Deno.renameSync(`${path}.new`, path);
  }

  /** Closes the journal. Its runs must have ended. */
  async close(): Promise<void> {
    this.kept.close();
    await this.store.close();
  }
}

/**
 * Creates the missing parts of a home, and closes to others what is open to them: of a copied home,
 * say.
 */
function makeHome(home: string, onNotice: OpenOptions["onNotice"]): void {
  Deno.mkdirSync(dirname(home), { recursive: true });
  const folders = HOME_FOLDERS.map((name) => `${home}/${name}`);
  for (const path of [home, ...folders]) makePrivate(path);
  const ours = [...folders, ...JOURNAL_FILES.map((name) => `${home}/${name}`)];
  const open = takeFromOthers(ours);
  if (open.length > 0) {
    const names = open.map((path) => path.slice(home.length + 1)).join(", ");
    onNotice?.(
      `${home}: other users could read ${names}. Now only you can (chmod 700, 600)`,
    );
  }
}

/** On a separate line, even after a torn one. */
function appendLine(path: string, line: string): void {
  const torn = existsSync(path) && !/(?:^|\n)$/.test(Deno.readTextFileSync(path));
  Deno.writeTextFileSync(path, `${torn ? "\n" : ""}${line}\n`, {
    append: true,
    mode: PRIVATE_FILE,
  });
}

function makePrivate(path: string): void {
  try {
    Deno.mkdirSync(path, { mode: PRIVATE_DIRECTORY });
  } catch (error) { // Its creator, or the link to another disk, decides who may enter.
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
}
