import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { type Clock, systemClock } from "./clock.ts";
import { InvalidInputError } from "./errors.ts";
import { GroupCommit } from "./group_commit.ts";
import { JOURNAL_VERSION } from "./journal_version.ts";
import { PRIVATE_FILE } from "./private_files.ts";
import { checkRunId, hasRunId, shown } from "./run_id.ts";
import { endedAs } from "./run_life.ts";
import { asStoreError, ensureSchema } from "./sqlite_schema.ts";
import {
  ADVANCE,
  ADVANCE_TO_SIGNAL,
  ALL_UNFINISHED,
  CLAIM,
  FINISH,
  INSERT_ROW,
  INSERT_RUN,
  RELEASE,
  REMOVE,
  RENEW,
  REOPEN,
  REQUEST,
} from "./sqlite_statements.ts";
import type {
  Appended,
  Claimed,
  ClaimOptions,
  DequeueOptions,
  FinalStatus,
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
  /** Bound of the file's size in pages of 4 KiB: a write beyond it fails as on a full disk. */
  pages_max?: number;
};

/** Writes of one transaction at most; the rest goes into the next. */
const BATCH_MAX = 256;

/** Columns that hold JSON; the others are as in `RunHead`. */
type HeadJson = { owner: string | null; requests: string; needs: string; parent: string | null };
type HeadRow = Omit<RunHead, keyof HeadJson> & HeadJson & { no: number };
type Write = { what: string; apply(): unknown; resolve(value: unknown): void; reject(error: unknown): void };

/**
 * The journal in one SQLite file. Safe for several processes: every write is one immediate transaction, durable when its
 * promise settles. Writes that are asked for in one turn of the event loop share a transaction and its fsync.
 */
export class SqliteStore implements Store {
  /** The file. */
  readonly path: string;
  readonly #clock: Clock;
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #group = new GroupCommit<Write, Write[]>({
    turn: () => systemClock.turn(),
    load: (waiting) => ({ group: waiting.slice(0, BATCH_MAX), left: waiting.slice(BATCH_MAX) }),
    commit: (writes) => this.#commit(writes),
  });
  #closing: Promise<void> | null = null;

  /** Opens or creates the file. @throws {EngineError} If it cannot be a journal of this version. */
  constructor(path: string, options: SqliteOptions = {}) {
    this.path = path;
    this.#clock = options.clock ?? systemClock;
    try {
      mkdirSync(dirname(path), { recursive: true });
      closeSync(openSync(path, "a", PRIVATE_FILE)); // The files beside it get the mode that this one has.
      this.#db = new DatabaseSync(path);
    } catch (error) {
      throw asStoreError(error, "open the journal", path);
    }
    try {
      this.#db.exec(`PRAGMA busy_timeout = ${Math.trunc(options.busy_timeout_ms ?? 5_000)}`);
      this.#db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
      ensureSchema(this.#db, path);
      if (options.pages_max !== undefined) this.#db.exec(`PRAGMA max_page_count = ${Math.trunc(options.pages_max)}`);
    } catch (error) {
      this.#db.close();
      throw asStoreError(error, "open the journal", path);
    }
  }

  create(run: NewRun, rows: NewRow[] = []): Promise<RunHead> {
    return this.#write(`create run '${run.id}'`, () => {
      const { id, name, entry, graph, graph_hash, config, packages } = run;
      const { queue = null, priority = 0, needs = {}, parent = null, home = null, journal = JOURNAL_VERSION } = run;
      const row = this.#prepare(INSERT_RUN).get({
        ...{ id, name, entry, graph, graph_hash, config, packages, queue, priority, home, journal },
        needs: JSON.stringify(needs),
        parent: parent && JSON.stringify(parent),
        last_seq: rows.length,
        now: this.#clock.now(),
      });
      if (!row) {
        throw new InvalidInputError(`Cannot create run '${id}' because there is one already: choose another --id`, {
          run: id,
        });
      }
      this.#insert(rows, { no: row.no as number, first_seq: 1, epoch: 0 });
      return toHead(row);
    });
  }

  identity(): Promise<StoreIdentity> {
    return this.#read("read the journal's identity", () => {
      const { id, since_ms } = this.#prepare("SELECT id, since_ms FROM identity").get() as StoreIdentity;
      return { id, since_ms };
    });
  }

  head(run: string): Promise<RunHead | null> {
    return this.#read(`read run '${shown(run)}'`, () => this.#head(checkRunId(run)));
  }

  heads(filter: { limit?: number } = {}): Promise<RunHead[]> {
    const limit = filter.limit ?? -1; // SQLite's "no limit".
    return this.#read("list the runs", () => {
      return this.#prepare("SELECT * FROM runs ORDER BY no DESC LIMIT ?").all(limit).map(toHead).filter(hasRunId);
    });
  }

  misnamed(): Promise<string[]> {
    return this.#read("list the runs", () => {
      const rows = this.#prepare("SELECT id FROM runs ORDER BY no DESC").all() as { id: string }[];
      return rows.filter((row) => !hasRunId(row)).map(({ id }) => id);
    });
  }

  claim(run: string, owner: Owner, options: ClaimOptions): Promise<Claimed> {
    return this.#write(`claim run '${shown(run)}'`, () => this.#claim(checkRunId(run), owner, options));
  }

  dequeue(owner: Owner, { lease_ms, choose }: DequeueOptions): Promise<RunHead | null> {
    return this.#write("take a run from the queue", () => {
      const runs = this.#prepare(ALL_UNFINISHED).all().map(toHead).filter(hasRunId);
      const chosen = choose(runs, this.#clock.now());
      if (chosen === null) return null;
      const { claimed, head } = this.#claim(chosen.run, owner, { lease_ms, force: chosen.force });
      return claimed ? head : null;
    });
  }

  renew(
    run: string,
    epoch: number,
    lease_ms: number,
  ): Promise<{ fenced: true } | { fenced: false; requests: RequestKind[] }> {
    return this.#write(`renew the lease of run '${run}'`, () => {
      const row = this.#prepare(RENEW).get({ run, epoch, now: this.#clock.now(), lease_ms });
      if (row) return { fenced: false, requests: JSON.parse(row.requests as string) };
      return this.#fenced(run);
    });
  }

  append(run: string, epoch: number, rows: NewRow[]): Promise<Appended> {
    return this.#write(`append ${rows.length} rows to run '${run}'`, (): Appended => {
      const head = this.#prepare(ADVANCE).get({ run, epoch, now: this.#clock.now(), count: rows.length });
      if (!head) return this.#fenced(run);
      const last_seq = head.last_seq as number;
      this.#insert(rows, { no: head.no as number, first_seq: last_seq - rows.length + 1, epoch });
      return { fenced: false, last_seq };
    });
  }

  remove(run: string, epoch: number, seqs: number[]): Promise<Appended> {
    return this.#write(`remove ${seqs.length} rows of run '${run}'`, (): Appended => {
      const head = this.#prepare(ADVANCE).get({ run, epoch, now: this.#clock.now(), count: 0 });
      if (!head) return this.#fenced(run);
      this.#prepare(REMOVE).run({ no: head.no as number, seqs: JSON.stringify(seqs) });
      return { fenced: false, last_seq: head.last_seq as number };
    });
  }

  read(run: string, query: ReadQuery = {}): Promise<JournalRow[]> {
    return this.#read(`read the journal of run '${run}'`, () => {
      const { sql, values } = selectRows(run, query);
      return this.#prepare(sql).all(...values).map(toRow);
    });
  }

  request(run: string, kind: RequestKind): Promise<RunHead> {
    return this.#write(`ask run '${shown(run)}' to ${kind}`, () => {
      checkRunId(run);
      const row = this.#prepare(REQUEST).get({ run, kind, now: this.#clock.now() });
      return row ? toHead(row) : this.#known(run);
    });
  }

  signal(run: string, name: string, value: string): Promise<RunHead> {
    return this.#write(`signal '${name}' to run '${run}'`, () => {
      const head = this.#prepare(ADVANCE_TO_SIGNAL).get({ run, name, now: this.#clock.now() });
      const place = head as { no: number; epoch: number; last_seq: number } | undefined;
      if (place) this.#insert([{ kind: "signal", key: name, value }], { ...place, first_seq: place.last_seq });
      return this.#known(run);
    });
  }

  finish(
    run: string,
    epoch: number,
    status: FinalStatus,
    error?: string,
  ): Promise<{ fenced: true } | { fenced: false; status: FinalStatus }> {
    return this.#write(`finish run '${run}'`, () => {
      const now = this.#clock.now();
      const row = this.#prepare(FINISH).get({ run, epoch, status, now, error: error ?? null });
      if (row) return { fenced: false, status: row.status as FinalStatus };
      return endedAs(this.#known(run), epoch);
    });
  }

  release(run: string, epoch: number): Promise<void> {
    return this.#write(`release run '${run}'`, () => {
      this.#prepare(RELEASE).get({ run, epoch, now: this.#clock.now() });
      this.#known(run);
    });
  }

  reopen(run: string, epoch: number): Promise<Appended> {
    return this.#write(`reopen run '${run}'`, (): Appended => {
      const row = this.#prepare(REOPEN).get({ run, epoch, now: this.#clock.now() });
      return row ? { fenced: false, last_seq: row.last_seq as number } : this.#fenced(run);
    });
  }

  /** Finishes the writes that were asked for, then closes the file. */
  close(): Promise<void> {
    return this.#closing ??= this.#group.idle().then(() => this.#db.close());
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) this.#statements.set(sql, statement = this.#db.prepare(sql));
    return statement;
  }

  /** Within a write's transaction. */
  #insert(rows: NewRow[], { no, first_seq, epoch }: { no: number; first_seq: number; epoch: number }): void {
    const [insert, now] = [this.#prepare(INSERT_ROW), this.#clock.now()];
    rows.forEach((row, i) => {
      insert.run(no, first_seq + i, epoch, now, row.kind, row.key, row.input_hash ?? null, row.value);
    });
  }

  /** Within a write's transaction. */
  #claim(run: string, owner: Owner, { lease_ms, force, seen_epoch, ended }: ClaimOptions): Claimed {
    const row = this.#prepare(CLAIM).get({
      run,
      now: this.#clock.now(),
      owner: JSON.stringify(owner),
      boot_id: owner.boot_id,
      lease_ms,
      force: force ? 1 : 0,
      ended: ended ? 1 : 0,
      seen_epoch: seen_epoch ?? null,
    });
    return row ? { claimed: true, head: toHead(row) } : { claimed: false, head: this.#known(run) };
  }

  #head(run: string): RunHead | null {
    const row = this.#prepare("SELECT * FROM runs WHERE id = ?").get(run);
    return row ? toHead(row) : null;
  }

  #known(run: string): RunHead {
    const head = this.#head(run);
    if (head) return head;
    throw new InvalidInputError(`Cannot find run '${run}' in ${this.path}: 'runs' lists those that are there`, { run });
  }

  /** A write that changed nothing: another engine owns the run, or no run has that name. */
  #fenced(run: string): { fenced: true } {
    this.#known(run);
    return { fenced: true };
  }

  // deno-lint-ignore require-await -- async, so that every error is a rejection
  async #read<T>(what: string, body: () => T): Promise<T> {
    try {
      this.#assertOpen();
      return body();
    } catch (error) {
      throw asStoreError(error, what, this.path);
    }
  }

  #write<T>(what: string, apply: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#assertOpen();
      this.#group.add({ what, apply, resolve: resolve as (value: unknown) => void, reject });
    });
  }

  #assertOpen(): void {
    if (this.#closing) throw new InvalidInputError(`Cannot use the journal ${this.path} because it is closed`);
  }

  /** One transaction for the whole batch, then every promise settles. */
  #commit(batch: Write[]): void {
    let settle: (() => void)[];
    try {
      this.#prepare("BEGIN IMMEDIATE").run();
      settle = batch.map((write) => this.#applyAlone(write));
      this.#prepare("COMMIT").run();
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      for (const write of batch) write.reject(asStoreError(error, write.what, this.path));
      return;
    }
    for (const tell of settle) tell();
  }

  /**
   * Runs one write of the batch so that its failure undoes nothing but itself. Answers how to settle its promise once the
   * batch is durable. Throws when SQLite has given up the whole transaction (a full disk does that).
   */
  #applyAlone(write: Write): () => void {
    this.#prepare("SAVEPOINT one").run();
    try {
      const value = write.apply();
      this.#prepare("RELEASE one").run();
      return () => write.resolve(value);
    } catch (error) {
      if (!this.#db.isTransaction) throw error;
      this.#prepare("ROLLBACK TO one").run();
      this.#prepare("RELEASE one").run();
      return () => write.reject(asStoreError(error, write.what, this.path));
    }
  }
}

function toHead(row: unknown): RunHead {
  const { no: _, owner, requests, needs, parent, ...rest } = row as HeadRow;
  const orNull = (json: string | null) => json === null ? null : JSON.parse(json);
  const parsed = { owner: orNull(owner), requests: JSON.parse(requests), needs: JSON.parse(needs) };
  return { ...rest, ...parsed, parent: orNull(parent) };
}

/** Rows come with null where there is no input hash. */
function toRow(row: unknown): JournalRow {
  const { seq, epoch, at_ms, kind, key, input_hash, value } = row as JournalRow;
  const found: JournalRow = { seq, epoch, at_ms, kind, key, value };
  if (input_hash !== null) found.input_hash = input_hash;
  return found;
}

/**
 * The index is named, not left to the planner, which without statistics prefers any equality on `kind` to a narrow range
 * of keys: with a prefix, only the keys under it are read; `newest_first` with kinds walks back from the last such row,
 * and `after_seq` reads what is newer, however much history lies under the prefix.
 */
function selectRows(run: string, query: ReadQuery): { sql: string; values: (string | number)[] } {
  const { kinds, prefix, after_seq, limit, newest_first } = query;
  const conditions = ["run_no = (SELECT no FROM runs WHERE id = ?)"];
  const values: (string | number)[] = [run];
  if (kinds) {
    conditions.push(`kind IN (${kinds.map(() => "?").join(", ")})`);
    values.push(...kinds);
  }
  if (prefix) {
    conditions.push("key >= ? AND key < ?");
    values.push(prefix, `${prefix}\u{10FFFF}`); // UTF-8 order: no key holds that noncharacter.
  }
  if (after_seq !== undefined) {
    conditions.push("seq > ?");
    values.push(after_seq);
  }
  const walksBack = kinds !== undefined && newest_first === true && limit !== undefined;
  const isTail = after_seq !== undefined && after_seq > 0;
  const index = prefix && !walksBack && !isTail ? "journal_key" : kinds ? "journal_kind" : "journal_seq";
  const order = newest_first ? "DESC" : "ASC";
  values.push(limit ?? -1);
  const sql = `SELECT seq, epoch, at_ms, kind, key, input_hash, value FROM journal INDEXED BY ${index}
    WHERE ${conditions.join(" AND ")} ORDER BY seq ${order} LIMIT ?`;
  return { sql, values };
}
