/** A store in memory that can crash, for tests of graphs and stages. */
import {
  type Appended,
  type Claimed,
  type ClaimOptions,
  type Clock,
  type DequeueOptions,
  type HeadsFilter,
  type JournalRow,
  type NewRow,
  type NewRun,
  type Owner,
  type ReadQuery,
  type RequestKind,
  type RunHead,
  SqliteJournal,
  type Store,
  type StoreIdentity,
  systemClock,
} from "../engine/mod.ts";

/** What every store over one memory sees: the database, and rows that `rows` has read from it. */
type Shared = {
  db: SqliteJournal["options"]["db"];
  read: Map<string, { rows: JournalRow[]; changes: number }>;
  /** How often rows were written. */
  changes: number;
};
/** The clock of a {@linkcode MemoryStore}, and where it crashes. */
export type MemoryStoreOptions = {
  clock?: Clock;
  /**
   * The store throws `Crashed` at every use once this many appends are durable. What each of them
   * holds depends on timing.
   */
  crash_after_appends?: number;
  /**
   * The same once an append is durable of whose rows this is true: by a row's key, the same point
   * of a run at any speed.
   */
  crash_after?: (rows: readonly JournalRow[]) => boolean;
};

/** What a `MemoryStore` throws after its crash. */
export class Crashed extends Error {
  constructor() {
    super("crashed");
    this.name = "Crashed";
  }
}

/** SQLite in memory, for one process: an operation is carried out at the moment it is asked for. */
export class MemoryStore implements Store {
  /** Appends since this store (not what it shares) was made. */
  appends = 0;
  readonly #shared: Shared;
  readonly #journal: SqliteJournal;
  readonly #options: MemoryStoreOptions;
  #crashed: boolean;

  /** Empty, unless {@linkcode MemoryStore.restarted} hands it what another store wrote. */
  constructor(options: MemoryStoreOptions = {}, shared?: Shared) {
    const { clock = systemClock, crash_after_appends: limit = Infinity } = options;
    this.#journal = shared
      ? new SqliteJournal({ db: shared.db, where: "memory", clock })
      : SqliteJournal.inMemory(clock);
    this.#shared = shared ?? { db: this.#journal.options.db, read: new Map(), changes: 0 };
    this.#options = options;
    this.#crashed = limit <= 0;
  }

  /** The same data for a new engine, as a new process would find it: owners are gone. */
  restarted(options: MemoryStoreOptions = {}): MemoryStore {
    this.#journal.prepare("UPDATE runs SET owner = NULL").run();
    return new MemoryStore({ clock: this.#options.clock, ...options }, this.#shared);
  }

  /** All rows of a run. */
  rows(run: string): readonly JournalRow[] {
    const { read, changes } = this.#shared;
    const known = read.get(run) ?? { rows: [], changes: -1 };
    if (known.changes < changes) {
      const after_seq = known.rows.at(-1)?.seq ?? 0;
      known.rows = known.rows.concat(this.#journal.read(run, { after_seq }));
    }
    read.set(run, { rows: known.rows, changes });
    return known.rows;
  }

  /** Puts another value in the place of a row's, as a damaged file has it. */
  damage(run: string, { seq, value }: { seq: number; value: string }): void {
    const of_run = "run_no = (SELECT no FROM runs WHERE id = ?)";
    this.#journal.prepare(`UPDATE journal SET value = ? WHERE ${of_run} AND seq = ?`)
      .run(value, run, seq);
    this.#shared.read.delete(run);
  }

  create(run: NewRun, rows?: NewRow[]): Promise<RunHead> {
    return this.#alone((journal) => journal.create(run, rows));
  }

  identity(): Promise<StoreIdentity> {
    return this.#do((journal) => journal.identity());
  }

  head(run: string): Promise<RunHead | null> {
    return this.#do((journal) => journal.head(run));
  }

  heads(filter?: HeadsFilter): Promise<RunHead[]> {
    return this.#do((journal) => journal.heads(filter));
  }

  claim(run: string, owner: Owner, options: ClaimOptions): Promise<Claimed> {
    return this.#do((journal) => journal.claim(run, owner, options));
  }

  dequeue(owner: Owner, options: DequeueOptions): Promise<RunHead | null> {
    return this.#do((journal) => journal.dequeue(owner, options));
  }

  renew(run: string, epoch: number, lease_ms: number): ReturnType<Store["renew"]> {
    return this.#do((journal) => journal.renew(run, epoch, lease_ms));
  }

  append(run: string, epoch: number, rows: NewRow[]): Promise<Appended> {
    return this.#alone((journal) => {
      const answer = journal.append(run, epoch, rows);
      if (!answer.fenced) this.#crashed = this.#isLast(run, answer.last_seq - rows.length);
      return answer;
    });
  }

  remove(run: string, epoch: number, seqs: number[]): Promise<Appended> {
    this.#shared.read.delete(run);
    return this.#alone((journal) => journal.remove(run, epoch, seqs));
  }

  read(run: string, query?: ReadQuery): Promise<JournalRow[]> {
    return this.#do((journal) => journal.read(run, query));
  }

  request(run: string, kind: RequestKind): Promise<RunHead> {
    return this.#do((journal) => journal.request(run, kind));
  }

  signal(run: string, name: string, value: string): Promise<RunHead> {
    return this.#alone((journal) => journal.signal(run, name, value));
  }

  finish(...ending: Parameters<Store["finish"]>): ReturnType<Store["finish"]> {
    return this.#do((journal) => journal.finish(...ending));
  }

  release(run: string, epoch: number): Promise<void> {
    return this.#do((journal) => journal.release(run, epoch));
  }

  reopen(run: string, epoch: number): Promise<Appended> {
    return this.#do((journal) => journal.reopen(run, epoch));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Whether this append, of the rows after `after_seq`, is the last before the crash. */
  #isLast(run: string, after_seq: number): boolean {
    const { crash_after, crash_after_appends: limit = Infinity } = this.#options;
    const crashes = crash_after?.(this.#journal.read(run, { after_seq })) ?? false;
    return ++this.appends >= limit || crashes;
  }

  // deno-lint-ignore require-await -- async, so that every error is a rejection
  async #do<T>(body: (journal: SqliteJournal) => T): Promise<T> {
    if (this.#crashed) throw new Crashed();
    return body(this.#journal);
  }

  /** Several statements: all of them or none. */
  #alone<T>(body: (journal: SqliteJournal) => T): Promise<T> {
    this.#shared.changes++;
    return this.#do((journal) => journal.alone(() => body(journal)));
  }
}
