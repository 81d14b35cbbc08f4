import {
  arrayOf,
  PostgresLink,
  type PostgresOptions,
  type Row,
  type Value,
} from "./postgres_link.ts";
import { AppendLane, noSuchRun } from "./postgres_lane.ts";
import { ensurePostgresSchema } from "./postgres_schema.ts";
import { headsOf } from "./recorded_head.ts";
import { selectRows, statements } from "./postgres_statements.ts";
import { InvalidInputError } from "../errors.ts";
import { JOURNAL_VERSION } from "./journal_version.ts";
import { checkedHead, checkRunId } from "../run_id.ts";
import { endedAs } from "./run_life.ts";
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
  Store,
  StoreIdentity,
} from "./store.ts";

/**
 * The journal in PostgreSQL, for several engines on one database. Every operation is one statement,
 * so nothing is left open on the server when a process freezes. All of them may be sent twice: if
 * the server goes away between a statement and its answer, it is sent again, and the effect of the
 * first one is recognised.
 */
export class PostgresStore implements Store {
  /** The address without its password. */
  readonly where: string;
  readonly #link: PostgresLink;
  readonly #lane: AppendLane;
  readonly #sql: ReturnType<typeof statements>;
  #ready: Promise<void> | null = null;
  #closed = false;

  /**
   * Connects and creates its tables at first use.
   * @throws {InvalidInputError} If the URL cannot be one.
   */
  constructor(url: string, options: PostgresOptions = {}) {
    const now = options.now_sql ?? "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    this.#link = new PostgresLink(url, options);
    this.#lane = new AppendLane(this.#link, now);
    this.#sql = statements(now);
    this.where = this.#link.where;
  }

  async create(run: NewRun, rows: NewRow[] = []): Promise<RunHead> {
    const { id, name, entry, graph, graph_hash, config, packages } = run;
    const {
      queue = null,
      priority = 0,
      needs = {},
      parent = null,
      home = null,
      journal = JOURNAL_VERSION,
    } = run;
    checkRunId(id);
    const token = crypto.randomUUID();
    const json = [JSON.stringify(needs), parent && JSON.stringify(parent)];
    const values = [
      id,
      name,
      entry,
      graph,
      graph_hash,
      config,
      packages,
      queue,
      priority,
      ...json,
      token,
      home,
      journal,
    ];
    return await this.#do(`create run '${id}'`, async () => {
      const [head] = await this.#link.query(this.#sql.create, [
        ...values,
        rows.length,
        ...columnsOf(rows),
      ]);
      if (head) return toHead(head);
      const [taken] = await this.#link.query(this.#sql.head, [id]);
      if (taken?.made_by === token) return toHead(taken);
      throw new InvalidInputError(
        `Cannot create run '${id}' because it already exists: choose a different --id`,
        {
          run: id,
        },
      );
    });
  }

  identity(): Promise<StoreIdentity> {
    return this.#do("read the journal's identity", async () => {
      const [row] = await this.#link.query<StoreIdentity>("SELECT id, since_ms FROM identity", []);
      return { id: row!.id, since_ms: row!.since_ms };
    });
  }

  async head(run: string): Promise<RunHead | null> {
    checkRunId(run);
    return await this.#do(`read run '${run}'`, () => this.#head(run));
  }

  heads({ limit, onDamaged }: HeadsFilter = {}): Promise<RunHead[]> {
    return this.#do("list the runs", async () => {
      const rows = await this.#link.query(this.#sql.list, [limit ?? null]);
      return headsOf(rows, toHead, onDamaged);
    });
  }

  async claim(run: string, owner: Owner, options: ClaimOptions): Promise<Claimed> {
    checkRunId(run);
    const token = crypto.randomUUID();
    return await this.#do(`claim run '${run}'`, async (): Promise<Claimed> => {
      const [claimed] = await this.#link.query(
        this.#sql.claim,
        claimValues(run, owner, { ...options, token }),
      );
      if (claimed) return { claimed: true, head: this.#owned(claimed) };
      const [row] = await this.#link.query(this.#sql.head, [run]);
      if (!row) throw noSuchRun(run, this.where);
      return row.claimed_by === token
        ? { claimed: true, head: this.#owned(row) }
        : { claimed: false, head: toHead(row) };
    });
  }

  /**
   * Two engines see each other's choice because each claims only in the turn in which it has
   * looked: if two looked in the same turn, the second looks again. (A lock from the look to the
   * claim would stay with an engine that freezes.)
   */
  dequeue(owner: Owner, { lease_ms, choose }: DequeueOptions): Promise<RunHead | null> {
    const token = crypto.randomUUID();
    return this.#do("take a run from the queue", async () => {
      for (;;) {
        const rows = await this.#link.query<Row & { turn: number; now_ms: number }>(
          this.#sql.unfinished,
          [],
        );
        const mine = rows.find(({ claimed_by }) => claimed_by === token);
        if (mine) return this.#owned(mine);
        const { turn, now_ms } = rows[0]!; // The row of the turn is there without a run, too.
        const chosen = choose(
          rows.filter(({ id }) => id !== null).map(toHead),
          now_ms,
        );
        if (chosen === null) return null;
        const values = claimValues(chosen.run, owner, { lease_ms, force: chosen.force, token });
        const [answer] = await this.#link.query<Row & { in_turn: boolean }>(this.#sql.take, [
          ...values,
          turn,
        ]);
        if (answer?.in_turn) {
          return answer.id === null ? await this.#notTaken(chosen.run) : this.#owned(answer);
        }
      }
    });
  }

  renew(run: string, epoch: number, lease_ms: number): ReturnType<Store["renew"]> {
    return this.#do(`renew the lease of run '${run}'`, async () => {
      const [row] = await this.#link.query<{ requests: RequestKind[] }>(this.#sql.renew, [
        run,
        epoch,
        lease_ms,
      ]);
      return row ? { fenced: false, requests: row.requests } : await this.#fenced(run);
    });
  }

  async append(run: string, epoch: number, rows: NewRow[]): Promise<Appended> {
    this.#assertOpen();
    await (this.#ready ??= this.#open());
    return await this.#lane.append(run, epoch, rows);
  }

  remove(run: string, epoch: number, seqs: number[]): Promise<Appended> {
    return this.#do(`remove ${seqs.length} rows of run '${run}'`, async (): Promise<Appended> => {
      const [row] = await this.#link.query<{ last_seq: number }>(this.#sql.remove, [
        run,
        epoch,
        arrayOf(seqs),
      ]);
      return row ? { fenced: false, last_seq: row.last_seq } : await this.#fenced(run);
    });
  }

  read(run: string, query: ReadQuery = {}): Promise<JournalRow[]> {
    return this.#do(`read the journal of run '${run}'`, async () => {
      const { text, values } = selectRows(run, query);
      return (await this.#link.query(text, values)).map(toRow);
    });
  }

  async request(run: string, kind: RequestKind): Promise<RunHead> {
    checkRunId(run);
    return await this.#do(`ask run '${run}' to ${kind}`, async () => {
      const [row] = await this.#link.query(this.#sql.request, [run, kind]);
      return row ? toHead(row) : await this.#knownHead(run);
    });
  }

  signal(run: string, name: string, value: string): Promise<RunHead> {
    return this.#do(`signal '${name}' to run '${run}'`, async () => {
      await this.#link.query(this.#sql.signal, [run, name, value]);
      return await this.#knownHead(run);
    });
  }

  finish(
    run: string,
    epoch: number,
    status: FinalStatus,
    error?: string,
  ): ReturnType<Store["finish"]> {
    return this.#do(`finish run '${run}'`, async () => {
      const values = [run, epoch, status, error ?? null];
      const [row] = await this.#link.query<{ status: FinalStatus }>(this.#sql.finish, values);
      this.#lane.forget(run);
      if (row) return { fenced: false, status: row.status };
      return endedAs(await this.#knownHead(run), epoch);
    });
  }

  release(run: string, epoch: number): Promise<void> {
    return this.#do(`release run '${run}'`, async () => {
      const released = await this.#link.query(this.#sql.release, [run, epoch]);
      this.#lane.forget(run);
      if (released.length === 0) await this.#knownHead(run);
    });
  }

  reopen(run: string, epoch: number): Promise<Appended> {
    return this.#do(`reopen run '${run}'`, async (): Promise<Appended> => {
      const [row] = await this.#link.query<{ last_seq: number }>(this.#sql.reopen, [run, epoch]);
      return row ? { fenced: false, last_seq: row.last_seq } : await this.#fenced(run);
    });
  }

  /** Finishes the requested operations, then closes the connections. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#lane.idle();
    await this.#link.close();
  }

  async #do<T>(what: string, attempt: () => Promise<T>): Promise<T> {
    this.#assertOpen();
    await (this.#ready ??= this.#open());
    return await this.#link.patiently(what, attempt);
  }

  #assertOpen(): void {
    if (this.#closed) {
      throw new InvalidInputError(`Cannot use the journal ${this.where} because it is closed`);
    }
  }

  async #open(): Promise<void> {
    try {
      await this.#link.patiently("open the journal", () => ensurePostgresSchema(this.#link));
    } catch (error) {
      this.#ready = null; // The next operation tries again.
      throw error;
    }
  }

  async #head(run: string): Promise<RunHead | null> {
    const [row] = await this.#link.query(this.#sql.head, [run]);
    return row ? toHead(row) : null;
  }

  async #knownHead(run: string): Promise<RunHead> {
    const head = await this.#head(run);
    if (!head) throw noSuchRun(run, this.where);
    return head;
  }

  /** A write that changed nothing: another engine owns the run, or no run has that name. */
  async #fenced(run: string): Promise<{ fenced: true }> {
    await this.#knownHead(run);
    return { fenced: true };
  }

  async #notTaken(run: string): Promise<null> {
    await this.#knownHead(run);
    return null;
  }

  #owned(row: Row): RunHead {
    const head = toHead(row);
    this.#lane.knows(head.id, { epoch: head.epoch, last_seq: head.last_seq });
    return head;
  }
}

type Claim = ClaimOptions & { token: string };

function claimValues(
  run: string,
  owner: Owner,
  { lease_ms, force, seen_epoch, ended, token }: Claim,
): Value[] {
  return [
    run,
    JSON.stringify(owner),
    owner.boot_id,
    lease_ms,
    force ?? false,
    seen_epoch ?? null,
    ended ?? false,
    token,
  ];
}

/** Parameters `kind, key, input_hash, value` of an unnest. */
function columnsOf(rows: NewRow[]): string[] {
  return [
    arrayOf(rows.map(({ kind }) => kind)),
    arrayOf(rows.map(({ key }) => key)),
    arrayOf(rows.map(({ input_hash }) => input_hash ?? null)),
    arrayOf(rows.map(({ value }) => value)),
  ];
}

/** Columns of `runs` that belong to a head; the others are the store's own. */
const HEAD: readonly (keyof RunHead)[] = [
  ...["id", "name", "status", "epoch", "last_seq", "entry", "graph", "graph_hash"] as const,
  ...["config", "packages", "owner", "lease_until_ms", "requests", "error"] as const,
  ...["created_ms", "updated_ms", "queue", "priority", "needs", "parent", "home"] as const,
  "journal",
];

function toHead(row: Row): RunHead {
  return checkedHead(
    Object.fromEntries(HEAD.map((field) => [field, row[field]])) as unknown as RunHead,
  );
}

/** Rows have null if there is no input hash. */
function toRow(row: Row): JournalRow {
  const { seq, epoch, at_ms, kind, key, input_hash, value } = row as JournalRow;
  const found: JournalRow = { seq, epoch, at_ms, kind, key, value };
  if (input_hash !== null) found.input_hash = input_hash;
  return found;
}
