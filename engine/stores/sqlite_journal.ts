import { headsOf, recordedColumn } from "./recorded_head.ts";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Clock } from "../clock.ts";
import { InvalidInputError } from "../errors.ts";
import { JOURNAL_VERSION } from "./journal_version.ts";
import { checkedHead, checkRunId } from "../run_id.ts";
import { endedAs } from "./run_life.ts";
import { createTables } from "./sqlite_schema.ts";
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
  HeadsFilter,
  JournalRow,
  NewRow,
  NewRun,
  Owner,
  ReadQuery,
  RequestKind,
  RunHead,
  StoreIdentity,
} from "./store.ts";

/** SQLite's "no limit". */
const NO_LIMIT = -1;

/** Columns that contain JSON; the others are as in `RunHead`. */
type HeadJson = { owner: string | null; requests: string; needs: string; parent: string | null };
type HeadRow = Omit<RunHead, keyof HeadJson> & HeadJson & { no: number };
type Renewed = { fenced: true } | { fenced: false; requests: RequestKind[] };
type Finished = { fenced: true } | { fenced: false; status: FinalStatus };
type Place = { no: number; first_seq: number; epoch: number };

type JournalOptions = {
  db: DatabaseSync;
  /** What errors call the database. */
  where: string;
  clock: Clock;
};

/**
 * The operations of a store on one SQLite database, all synchronous. Callers of writing operations
 * are in a transaction, or in `alone`.
 */
export class SqliteJournal {
  readonly #statements = new Map<string, StatementSync>();

  constructor(readonly options: JournalOptions) {}

  /** A new and empty database, which ends with the process. */
  static inMemory(clock: Clock): SqliteJournal {
    const journal = new SqliteJournal({ db: new DatabaseSync(":memory:"), where: "memory", clock });
    createTables(journal.options.db);
    journal.prepare("UPDATE identity SET since_ms = ?").run(clock.now());
    return journal;
  }

  prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) this.#statements.set(sql, statement = this.options.db.prepare(sql));
    return statement;
  }

  /**
   * Runs one write so that its failure undoes only itself, unless SQLite has rolled back the whole
   * transaction (as on a full disk).
   */
  alone<T>(apply: () => T): T {
    this.prepare("SAVEPOINT one").run();
    try {
      const value = apply();
      this.prepare("RELEASE one").run();
      return value;
    } catch (error) {
      if (this.options.db.isTransaction) {
        this.prepare("ROLLBACK TO one").run();
        this.prepare("RELEASE one").run();
      }
      throw error;
    }
  }

  create(run: NewRun, rows: NewRow[] = []): RunHead {
    const { id, name, entry, graph, graph_hash, config, packages } = run;
    const { queue = null, priority = 0, needs = {}, parent = null, home = null } = run;
    const row = this.prepare(INSERT_RUN).get({
      id: checkRunId(id),
      name,
      entry,
      graph,
      graph_hash,
      config,
      packages,
      queue,
      priority,
      home,
      journal: run.journal ?? JOURNAL_VERSION,
      needs: JSON.stringify(needs),
      parent: parent && JSON.stringify(parent),
      last_seq: rows.length,
      now: this.#now,
    });
    if (!row) {
      throw new InvalidInputError(
        `Cannot create run '${id}' because it already exists: choose a different --id`,
        { run: id },
      );
    }
    this.#insert(rows, { no: row.no as number, first_seq: 1, epoch: 0 });
    return toHead(row);
  }

  identity(): StoreIdentity {
    const { id, since_ms } = this.prepare("SELECT id, since_ms FROM identity")
      .get() as StoreIdentity;
    return { id, since_ms };
  }

  head(run: string): RunHead | null {
    const row = this.prepare("SELECT * FROM runs WHERE id = ?").get(checkRunId(run));
    return row ? toHead(row) : null;
  }

  heads({ limit, onDamaged }: HeadsFilter = {}): RunHead[] {
    const rows = this.prepare("SELECT * FROM runs ORDER BY no DESC LIMIT ?").all(limit ?? NO_LIMIT);
    return headsOf(rows, toHead, onDamaged);
  }

  claim(run: string, owner: Owner, options: ClaimOptions): Claimed {
    const { lease_ms, force, seen_epoch, ended } = options;
    const row = this.prepare(CLAIM).get({
      run: checkRunId(run),
      now: this.#now,
      lease_ms,
      seen_epoch: seen_epoch ?? null,
      owner: JSON.stringify(owner),
      boot_id: owner.boot_id,
      force: force ? 1 : 0,
      ended: ended ? 1 : 0,
    });
    return row ? { claimed: true, head: toHead(row) } : { claimed: false, head: this.#known(run) };
  }

  dequeue(owner: Owner, { lease_ms, choose }: DequeueOptions): RunHead | null {
    const runs = this.prepare(ALL_UNFINISHED).all().map(toHead);
    const chosen = choose(runs, this.#now);
    if (chosen === null) return null;
    const { claimed, head } = this.claim(chosen.run, owner, { lease_ms, force: chosen.force });
    return claimed ? head : null;
  }

  renew(run: string, epoch: number, lease_ms: number): Renewed {
    const row = this.prepare(RENEW).get({ run, epoch, now: this.#now, lease_ms });
    if (!row) return this.#fenced(run);
    const requests = recordedColumn({ id: run }, {
      field: "requests",
      text: row.requests as string,
    });
    return { fenced: false, requests: requests as RequestKind[] };
  }

  append(run: string, epoch: number, rows: NewRow[]): Appended {
    const head = this.prepare(ADVANCE).get({ run, epoch, now: this.#now, count: rows.length });
    if (!head) return this.#fenced(run);
    const last_seq = head.last_seq as number;
    this.#insert(rows, { no: head.no as number, first_seq: last_seq - rows.length + 1, epoch });
    return { fenced: false, last_seq };
  }

  remove(run: string, epoch: number, seqs: number[]): Appended {
    const head = this.prepare(ADVANCE).get({ run, epoch, now: this.#now, count: 0 });
    if (!head) return this.#fenced(run);
    this.prepare(REMOVE).run({ no: head.no as number, seqs: JSON.stringify(seqs) });
    return { fenced: false, last_seq: head.last_seq as number };
  }

  read(run: string, query: ReadQuery = {}): JournalRow[] {
    const { sql, values } = selectRows(run, query);
    return this.prepare(sql).all(...values).map(toRow);
  }

  request(run: string, kind: RequestKind): RunHead {
    const row = this.prepare(REQUEST).get({ run: checkRunId(run), kind, now: this.#now });
    return row ? toHead(row) : this.#known(run);
  }

  signal(run: string, name: string, value: string): RunHead {
    const head = this.prepare(ADVANCE_TO_SIGNAL).get({ run, name, now: this.#now });
    const place = head as { no: number; epoch: number; last_seq: number } | undefined;
    if (place) {
      this.#insert([{ kind: "signal", key: name, value }], { ...place, first_seq: place.last_seq });
    }
    return this.#known(run);
  }

  finish(run: string, epoch: number, status: FinalStatus, error?: string): Finished {
    const row = this.prepare(FINISH).get({
      run,
      epoch,
      status,
      now: this.#now,
      error: error ?? null,
    });
    if (row) return { fenced: false, status: row.status as FinalStatus };
    return endedAs(this.#known(run), epoch);
  }

  release(run: string, epoch: number): void {
    if (!this.prepare(RELEASE).get({ run, epoch, now: this.#now })) this.#known(run);
  }

  reopen(run: string, epoch: number): Appended {
    const row = this.prepare(REOPEN).get({ run, epoch, now: this.#now });
    return row ? { fenced: false, last_seq: row.last_seq as number } : this.#fenced(run);
  }

  get #now(): number {
    return this.options.clock.now();
  }

  #insert(rows: NewRow[], { no, first_seq, epoch }: Place): void {
    const [insert, now] = [this.prepare(INSERT_ROW), this.#now];
    rows.forEach(({ kind, key, input_hash, value }, i) => {
      insert.run(no, first_seq + i, epoch, now, kind, key, input_hash ?? null, value);
    });
  }

  #known(run: string): RunHead {
    const head = this.head(run);
    if (head) return head;
    throw new InvalidInputError(
      `Cannot find run '${run}' in ${this.options.where}: 'runs' lists those that are there`,
      { run },
    );
  }

  /** A write that changed nothing: another engine owns the run, or no run has that name. */
  #fenced(run: string): { fenced: true } {
    this.#known(run);
    return { fenced: true };
  }
}

function toHead(row: unknown): RunHead {
  const { no: _, owner, requests, needs, parent, ...rest } = row as HeadRow;
  const orNull = (field: "owner" | "parent", text: string | null) =>
    text === null ? null : recordedColumn(rest, { field, text });
  const parsed = {
    owner: orNull("owner", owner),
    requests: recordedColumn(rest, { field: "requests", text: requests }),
    needs: recordedColumn(rest, { field: "needs", text: needs }),
    parent: orNull("parent", parent),
  };
  return checkedHead({ ...rest, ...parsed } as RunHead);
}

/** Rows have null if there is no input hash. */
function toRow(row: unknown): JournalRow {
  const { seq, epoch, at_ms, kind, key, input_hash, value } = row as JournalRow;
  const found: JournalRow = { seq, epoch, at_ms, kind, key, value };
  if (input_hash !== null) found.input_hash = input_hash;
  return found;
}

/**
 * The index is named, not left to the planner, which without statistics prefers any equality on
 * `kind` to a narrow range of keys: with a prefix, only the keys under it are read; `newest_first`
 * with kinds walks back from the last such row, and `after_seq` reads only newer rows, however much
 * history is under the prefix.
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
  const index = prefix && !walksBack && !isTail
    ? "journal_key"
    : kinds
    ? "journal_kind"
    : "journal_seq";
  const order = newest_first ? "DESC" : "ASC";
  values.push(limit ?? NO_LIMIT);
  const sql =
    `SELECT seq, epoch, at_ms, kind, key, input_hash, value FROM journal INDEXED BY ${index}
    WHERE ${conditions.join(" AND ")} ORDER BY seq ${order} LIMIT ?`;
  return { sql, values };
}
