import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Clock, systemClock } from "../clock.ts";
import { InvalidInputError } from "../errors.ts";
import { GroupCommit } from "./group_commit.ts";
import { PRIVATE_FILE } from "../files/private_files.ts";
import { shown } from "../run_id.ts";
import { SqliteJournal } from "./sqlite_journal.ts";
import { asStoreError, ensureSchema } from "./sqlite_schema.ts";
import type {
  Appended,
  Claimed,
  ClaimOptions,
  DequeueOptions,
  HeadsFilter,
  JournalRow,
  NewRow,
  NewRun,
  Owner,
  ReadQuery,
  RequestKind,
  RunHead,
  Store,
  StoreIdentity,
} from "./store.ts";

type SqliteOptions = {
  clock?: Clock;
  /** How long a write waits for another process's transaction. */
  busy_timeout_ms?: number;
  /** Limit of the file's size in pages of 4 KiB: a write beyond it fails as on a full disk. */
  pages_max?: number;
};

/** Writes of one transaction at most; the rest goes into the next. */
const BATCH_MAX = 256;

type Write = {
  what: string;
  apply(): unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
};

/**
 * The journal in one SQLite file. Safe for several processes: every write is one immediate
 * transaction, durable when its promise settles. Writes that are requested in one turn of the event
 * loop share a transaction and its fsync.
 */
export class SqliteStore implements Store {
  /** The file. */
  readonly path: string;
  readonly #db: DatabaseSync;
  readonly #journal: SqliteJournal;
  readonly #group = new GroupCommit<Write, Write[]>({
    turn: () => systemClock.turn(),
    load: (waiting) => ({ group: waiting.slice(0, BATCH_MAX), rest: waiting.slice(BATCH_MAX) }),
    commit: (writes) => this.#commit(writes),
  });
  #closing: Promise<void> | null = null;

  /** Opens or creates the file. @throws {EngineError} If it cannot be a journal of this version. */
  constructor(path: string, options: SqliteOptions = {}) {
    this.path = path;
    try {
      mkdirSync(dirname(path), { recursive: true });
      // The files next to it get the same mode.
      closeSync(openSync(path, "a", PRIVATE_FILE));
      this.#db = new DatabaseSync(path);
    } catch (error) {
      throw asStoreError(error, "open the journal", path);
    }
    try {
      this.#db.exec(`PRAGMA busy_timeout = ${Math.trunc(options.busy_timeout_ms ?? 5_000)}`);
      this.#db.exec(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON",
      );
      ensureSchema(this.#db, path);
      if (options.pages_max !== undefined) {
        this.#db.exec(`PRAGMA max_page_count = ${Math.trunc(options.pages_max)}`);
      }
    } catch (error) {
      this.#db.close();
      throw asStoreError(error, "open the journal", path);
    }
    const clock = options.clock ?? systemClock;
    this.#journal = new SqliteJournal({ db: this.#db, where: path, clock });
  }

  create(run: NewRun, rows: NewRow[] = []): Promise<RunHead> {
    return this.#write(`create run '${run.id}'`, (journal) => journal.create(run, rows));
  }

  identity(): Promise<StoreIdentity> {
    return this.#read("read the journal's identity", (journal) => journal.identity());
  }

  head(run: string): Promise<RunHead | null> {
    return this.#read(`read run '${shown(run)}'`, (journal) => journal.head(run));
  }

  heads(filter: HeadsFilter = {}): Promise<RunHead[]> {
    return this.#read("list the runs", (journal) => journal.heads(filter));
  }

  claim(run: string, owner: Owner, options: ClaimOptions): Promise<Claimed> {
    const what = `claim run '${shown(run)}'`;
    return this.#write(what, (journal) => journal.claim(run, owner, options));
  }

  dequeue(owner: Owner, options: DequeueOptions): Promise<RunHead | null> {
    return this.#write("take a run from the queue", (journal) => journal.dequeue(owner, options));
  }

  renew(run: string, epoch: number, lease_ms: number): ReturnType<Store["renew"]> {
    const what = `renew the lease of run '${run}'`;
    return this.#write(what, (journal) => journal.renew(run, epoch, lease_ms));
  }

  append(run: string, epoch: number, rows: NewRow[]): Promise<Appended> {
    const what = `append ${rows.length} rows to run '${run}'`;
    return this.#write(what, (journal) => journal.append(run, epoch, rows));
  }

  remove(run: string, epoch: number, seqs: number[]): Promise<Appended> {
    const what = `remove ${seqs.length} rows of run '${run}'`;
    return this.#write(what, (journal) => journal.remove(run, epoch, seqs));
  }

  read(run: string, query: ReadQuery = {}): Promise<JournalRow[]> {
    return this.#read(`read the journal of run '${run}'`, (journal) => journal.read(run, query));
  }

  request(run: string, kind: RequestKind): Promise<RunHead> {
    const what = `ask run '${shown(run)}' to ${kind}`;
    return this.#write(what, (journal) => journal.request(run, kind));
  }

  signal(run: string, name: string, value: string): Promise<RunHead> {
    const what = `signal '${name}' to run '${run}'`;
    return this.#write(what, (journal) => journal.signal(run, name, value));
  }

  finish(...ending: Parameters<Store["finish"]>): ReturnType<Store["finish"]> {
    return this.#write(`finish run '${ending[0]}'`, (journal) => journal.finish(...ending));
  }

  release(run: string, epoch: number): Promise<void> {
    return this.#write(`release run '${run}'`, (journal) => journal.release(run, epoch));
  }

  reopen(run: string, epoch: number): Promise<Appended> {
    return this.#write(`reopen run '${run}'`, (journal) => journal.reopen(run, epoch));
  }

  /** Finishes the requested writes, then closes the file. */
  close(): Promise<void> {
    return this.#closing ??= this.#group.idle().then(() => this.#db.close());
  }

  // deno-lint-ignore require-await -- async, so that every error is a rejection
  async #read<T>(what: string, body: (journal: SqliteJournal) => T): Promise<T> {
    try {
      this.#assertOpen();
      return body(this.#journal);
    } catch (error) {
      throw asStoreError(error, what, this.path);
    }
  }

  #write<T>(what: string, body: (journal: SqliteJournal) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#assertOpen();
      const apply = () => body(this.#journal);
      this.#group.add({ what, apply, resolve: resolve as (value: unknown) => void, reject });
    });
  }

  #assertOpen(): void {
    if (!this.#closing) return;
    throw new InvalidInputError(`Cannot use the journal ${this.path} because it is closed`);
  }

  /** One transaction for the whole batch, then every promise settles. */
  #commit(batch: Write[]): void {
    let settle: (() => void)[];
    try {
      this.#journal.prepare("BEGIN IMMEDIATE").run();
      settle = batch.map((write) => this.#applyAlone(write));
      this.#journal.prepare("COMMIT").run();
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      for (const write of batch) write.reject(asStoreError(error, write.what, this.path));
      return;
    }
    for (const tell of settle) tell();
  }

  /** How to settle the write's promise once the batch is durable. */
  #applyAlone(write: Write): () => void {
    try {
      const value = this.#journal.alone(() => write.apply());
      return () => write.resolve(value);
    } catch (error) {
      if (!this.#db.isTransaction) throw error; // The whole batch is lost.
      return () => write.reject(asStoreError(error, write.what, this.path));
    }
  }
}
