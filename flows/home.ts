import { existsSync } from "node:fs";
import { resolve } from "node:path";
import {
  ArtifactStore,
  InvalidInputError,
  parsePostgresUrl,
  PostgresStore,
  SqliteStore,
  type Store,
} from "../engine/mod.ts";
import { readWorkerStates } from "../workers/mod.ts";
import type { LiveFacts } from "./run_view.ts";

export type OpenOptions = {
  /** `postgres://...`; null for the SQLite file in the home. */
  store?: string | null;
  /** Told when a PostgreSQL goes away, and when it is back. */
  onNotice?: (text: string) => void;
};

/** Addresses of the PostgreSQL journals that runs of a home were recorded in, one a line. */
const STORES = "stores";
const addressOf = (url: string) => {
  const { text, schema } = parsePostgresUrl(url);
  return `${text}?schema=${schema}`;
};
const sqliteFile = (home: string) => `${home}/holdfast.db`;

/** A directory with the journal, the artifacts and the runs' files. Opened by commands and by scripts alike. */
export class Home {
  readonly dir: string;
  readonly store: Store;
  readonly artifacts: ArtifactStore;
  /** Of the PostgreSQL that is open, without its password. */
  #address: string | null = null;

  constructor(dir: string, options: { store: Store; artifacts: ArtifactStore }) {
    this.dir = dir;
    this.store = options.store;
    this.artifacts = options.artifacts;
  }

  /** Opens `dir` (made if it is not there). A PostgreSQL is connected to at the first use. */
  static open(dir: string, { store: url = null, onNotice }: OpenOptions = {}): Home {
    const home = resolve(dir);
    const postgres = url === null ? null : new PostgresStore(url, { onNotice });
    try {
      Deno.mkdirSync(`${home}/runs`, { recursive: true });
    } catch (cause) {
      throw new InvalidInputError(
        `Cannot use '${home}' as the home: ${(cause as Error).message}. Give a directory you may write to with --home`,
        { home },
        { cause },
      );
    }
    const store = postgres ?? new SqliteStore(sqliteFile(home));
    const opened = new Home(home, { store, artifacts: new ArtifactStore(`${home}/artifacts`) });
    if (url !== null) opened.#address = addressOf(url);
    return opened;
  }

  /**
   * The other journals whose runs keep artifacts and files in this home, opened. The caller closes them.
   * @throws {InvalidInputError} If one of them is a PostgreSQL: its URL, with the password, is not kept here.
   */
  otherStores(): Store[] {
    const here = this.#address;
    const others = this.#addresses().filter((address) => address !== here);
    if (others.length > 0) {
      throw new InvalidInputError(
        `Cannot tell what of '${this.dir}' is still needed as runs in ${others.join(", ")} keep files here too: ` +
          `name it with --store, or take it out of ${this.dir}/${STORES} if it is gone`,
        { stores: others },
      );
    }
    const file = sqliteFile(this.dir);
    return here !== null && existsSync(file) ? [new SqliteStore(file)] : [];
  }

  /** Notes that runs of the open journal keep files in this home: whoever opens another one must know. */
  rememberStore(): void {
    const here = this.#address;
    if (here === null || this.#addresses().includes(here)) return;
    Deno.writeTextFileSync(`${this.dir}/${STORES}`, `${here}\n`, { append: true });
  }

  #addresses(): string[] {
    const file = `${this.dir}/${STORES}`;
    return existsSync(file) ? Deno.readTextFileSync(file).split("\n").filter(Boolean) : [];
  }

  runDir(run: string): string {
    return `${this.dir}/runs/${run}`;
  }

  checkpointsDir(run: string): string {
    return `${this.dir}/checkpoints/${run}`;
  }

  /** Logs of the attempt, the engine's n-th start at this run. */
  logDir(run: string, attempt: number): string {
    return `${this.dir}/logs/${run}/attempt_${attempt}`;
  }

  /** What a run's engine wrote about itself beside the journal; empty if there is nothing. */
  async liveFacts(run: string): Promise<LiveFacts> {
    return { workers: await readWorkerStates(this.dir, run), metrics: this.lastMetrics(run) };
  }

  /** The last value of each metric. */
  lastMetrics(run: string): Record<string, number> {
    return readJson<Record<string, number>>(`${this.runDir(run)}/metrics.json`) ?? {};
  }

  /** Replaces a small file of a run whole: a reader sees the old one or the new one. */
  writeFact(run: string, options: { name: string; value: unknown }): void {
    const path = `${this.runDir(run)}/${options.name}`;
    Deno.writeTextFileSync(`${path}.new`, JSON.stringify(options.value));
    Deno.renameSync(`${path}.new`, path);
  }

  async close(): Promise<void> {
    await this.store.close();
  }
}

function readJson<T>(path: string): T | null {
  try {
    return JSON.parse(Deno.readTextFileSync(path)) as T;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
