/**
 * What a store can do. Operations, not SQL: everything above the drivers is written once, and one
 * contract suite tests every driver. Times are milliseconds of the store's own clock.
 */
import type { EngineError } from "../errors.ts";

/** Recorded kinds. `note` is a named fact (`note/version`, `note/checkpoint`, ...). */
export type RowKind =
  | "intent"
  | "result"
  | "failure"
  | "checkpoint"
  | "round"
  | "metrics"
  | "recovery"
  | "signal"
  | `note/${string}`;

/** A row of the journal before the store has numbered it. */
export type NewRow = {
  kind: RowKind;
  /**
   * Scope path + name + occurrence or id: `round/3/score#17`. For notes: what the note is about.
   */
  key: string;
  /** sha256 of the canonical JSON of the input, if there is one. */
  input_hash?: string;
  /** JSON text. Values over 64 KiB are moved to an artifact by the journal, not by the driver. */
  value: string;
};
/** A row of the journal: numbered from 1 in its run, with the epoch that wrote it and when. */
export type JournalRow = NewRow & { seq: number; epoch: number; at_ms: number };

/**
 * Who may append: one incarnation of an engine process. `boot_id` distinguishes two processes with
 * one pid.
 */
export type Owner = { boot_id: string; host: string; pid: number; process_start: string };

/** How a run ended. */
export type FinalStatus = "done" | "failed" | "cancelled";
/**
 * What another process requests from a run's engine: to cancel the run, or to finish the work in
 * flight and stop.
 */
export type RequestKind = "cancel" | "drain";

/**
 * Where a forked run leaves its parent: the prefix is the parent's rows up to `seq`, which close
 * `round`.
 */
export type Parent = { run: string; round: number; seq: number };

/** The head row of a run. */
export type RunHead = {
  id: string;
  name: string;
  status: "created" | "running" | FinalStatus;
  epoch: number;
  last_seq: number;
  /**
   * The module that defines the graph, its hash (names, versions, edges), the resolved
   * configuration (JSON), versions.
   */
  entry: string;
  graph: string;
  graph_hash: string;
  config: string;
  packages: string;
  owner: Owner | null;
  lease_until_ms: number;
  requests: RequestKind[];
  /** JSON of the error that failed the run. */
  error: string | null;
  created_ms: number;
  updated_ms: number;
  /** The queue from which an engine takes it; null: the process that created it runs it. */
  queue: string | null;
  /** The queued run with the higher priority goes first. */
  priority: number;
  /** Slots that the run holds while it runs: `{ gpu: 4 }`. */
  needs: Record<string, number>;
  /** Null: not a fork. */
  parent: Parent | null;
  /** The home in which the run keeps its files, as named by its creator; null: unknown. */
  home: string | null;
  /** The version of its journal: see `JOURNAL_VERSION`. */
  journal: number;
};
/** The fields that a run is created with. */
export type NewRun =
  & Pick<RunHead, "id" | "name" | "entry" | "graph" | "graph_hash" | "config" | "packages">
  & Partial<Pick<RunHead, "queue" | "priority" | "needs" | "parent" | "home" | "journal">>;

/** Which heads to list: how many at most, and what receives the error of one that is damaged. */
export type HeadsFilter = { limit?: number; onDamaged?: (error: EngineError) => void };

/**
 * The journal's identity: a random id, created with its tables. `since_ms`: no run in it is older.
 */
export type StoreIdentity = { id: string; since_ms: number };

/** `fenced`: another owner has claimed the run since; nothing was written. */
export type Appended = { fenced: false; last_seq: number } | { fenced: true };
/** Whether the run is now the caller's, and its head either way. */
export type Claimed = { claimed: true; head: RunHead } | { claimed: false; head: RunHead };

/** How a run is claimed: for how long, and whether despite a lease that has not expired. */
export type ClaimOptions = {
  lease_ms: number;
  force?: boolean;
  seen_epoch?: number;
  /**
   * Also takes a run that is done or cancelled, to collect what it no longer needs. It stays done
   * or cancelled.
   */
  ended?: boolean;
};

/**
 * Picks one of the unfinished runs, oldest first. Pure: it may be called again. `force`: as for a
 * claim.
 */
export type Choose = (runs: RunHead[], now_ms: number) => { run: string; force: boolean } | null;
/** For how long a run of a queue is claimed, and which. */
export type DequeueOptions = { lease_ms: number; choose: Choose };

/** Which rows to read: kinds, keys under a prefix, those after a number. */
export type ReadQuery = {
  kinds?: RowKind[];
  prefix?: string;
  after_seq?: number;
  limit?: number;
  newest_first?: boolean;
};

/**
 * Runs have valid ids (`RunId`). Another program may write to the store: what returns a head throws
 * BadDataError if its id is not valid.
 */
export interface Store {
  /** Which journal it is: reveals a home that is used with the wrong store. */
  identity(): Promise<StoreIdentity>;
  /**
   * Records a run, and in the same transaction the first rows of its journal (epoch 0): the prefix
   * of a fork.
   */
  create(run: NewRun, rows?: NewRow[]): Promise<RunHead>;
  /** One run's head; null if it does not exist. */
  head(run: string): Promise<RunHead | null>;
  /** Newest first. A head that cannot be read fails them all, unless `onDamaged` receives it. */
  heads(filter?: HeadsFilter): Promise<RunHead[]>;
  /**
   * Takes the run for `owner` and raises its epoch, in one statement. Refused (claimed: false)
   * while another owner's lease is fresh, unless `force` (the caller knows that the owner's process
   * is dead), and always if the run is done or cancelled, unless `ended`. `seen_epoch`: also
   * refused if the epoch has risen since the caller looked, so that two resumes of one dead run do
   * not take it from each other. A created run becomes running; a failed one stays so until
   * `reopen`. A drain request of the old owner is forgotten, a cancel request is not. A journal of
   * another version is refused.
   */
  claim(run: string, owner: Owner, options: ClaimOptions): Promise<Claimed>;
  /**
   * Claims the run that `choose` picks, in one transaction that excludes every other dequeue: two
   * engines see each other's choice. null: it picked none, or one that must not be claimed.
   */
  dequeue(owner: Owner, options: DequeueOptions): Promise<RunHead | null>;
  /**
   * Extends the lease and answers the requests made since; fenced if the epoch is no longer the
   * run's.
   */
  renew(
    run: string,
    epoch: number,
    lease_ms: number,
  ): Promise<{ fenced: true } | { fenced: false; requests: RequestKind[] }>;
  /**
   * Appends all rows or none, durable when the promise settles. The epoch is checked in the same
   * statement; a run that was finished or released since counts as fenced.
   */
  append(run: string, epoch: number, rows: NewRow[]): Promise<Appended>;
  /**
   * Deletes rows, all or none, under the same fence; rows that are already gone do not matter. Seqs
   * are never reused.
   */
  remove(run: string, epoch: number, seqs: number[]): Promise<Appended>;
  /**
   * Rows in order of seq; `newest_first` reverses the order, so `limit: 1` is the last such row.
   * `prefix`: of the key. `after_seq` is exclusive.
   */
  read(run: string, query?: ReadQuery): Promise<JournalRow[]>;
  /**
   * Asks the owner to cancel or drain. Cancelling an unowned run (its `owner` is null) takes effect
   * immediately; draining it, or requesting anything of an ended run, changes nothing.
   */
  request(run: string, kind: RequestKind): Promise<RunHead>;
  /**
   * Records a signal (a row of kind `signal`) for the engine that executes the run, now or later;
   * the sender need not own the run. A repeated name keeps its first value, and an ended run
   * accepts none: both change nothing.
   */
  signal(run: string, name: string, value: string): Promise<RunHead>;
  /**
   * Ends the run; a cancel request that came first wins, in the same statement. Releases the lease.
   * For a run that has already ended in this epoch it returns the existing status.
   */
  finish(
    run: string,
    epoch: number,
    status: FinalStatus,
    error?: string,
  ): Promise<{ fenced: true } | { fenced: false; status: FinalStatus }>;
  /**
   * Releases the run unfinished: it can be claimed immediately. If a cancel request is open, this
   * cancels it.
   */
  release(run: string, epoch: number): Promise<void>;
  /** Reopens a failed run (resume): status running, error cleared. Requires a claim. */
  reopen(run: string, epoch: number): Promise<Appended>;
  /** Closes files and connections. Everything acknowledged is already durable. */
  close(): Promise<void>;
}
