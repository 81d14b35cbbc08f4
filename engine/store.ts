/**
 * What a store can do. Operations, not SQL: everything above the drivers is written once, and one
 * contract suite tests every driver. Times are milliseconds of the store's own clock.
 */

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
  /** sha256 of the canonical JSON of the input, where there is one. */
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
 * What another process asks a run's engine for: to cancel it, or to let what is in flight finish
 * and stop.
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
  /** The queue that an engine takes it from; null: the process that made it runs it. */
  queue: string | null;
  /** The queued run with the higher priority goes first. */
  priority: number;
  /** Slots that the run holds while it runs: `{ gpu: 4 }`. */
  needs: Record<string, number>;
  /** Null: not a fork. */
  parent: Parent | null;
  /** Where the run keeps its files, by the name that its creator gave; null: unknown. */
  home: string | null;
  /** The version of its journal: see `JOURNAL_VERSION`. */
  journal: number;
};
/** The fields that a run is created with. */
export type NewRun =
  & Pick<RunHead, "id" | "name" | "entry" | "graph" | "graph_hash" | "config" | "packages">
  & Partial<Pick<RunHead, "queue" | "priority" | "needs" | "parent" | "home" | "journal">>;

/** Which journal this is: a random id, made with its tables. `since_ms`: no run in it is older. */
export type StoreIdentity = { id: string; since_ms: number };

/** `fenced`: another owner has claimed the run since; nothing was written. */
export type Appended = { fenced: false; last_seq: number } | { fenced: true };
/** Whether the run is now the caller's, and its head either way. */
export type Claimed = { claimed: true; head: RunHead } | { claimed: false; head: RunHead };

/** How a run is claimed: for how long, and whether over a lease that has not run out. */
export type ClaimOptions = {
  lease_ms: number;
  force?: boolean;
  seen_epoch?: number;
  /**
   * Takes a run that is done or cancelled too, to collect what it no longer needs. It stays done or
   * cancelled.
   */
  ended?: boolean;
};

/**
 * Picks one of the unfinished runs, oldest first. Pure: it may be called again. `force`: as of a
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
 * A run with an invalid id (`RunId`) is never returned, claimed or changed: older versions accepted
 * any text, and so may other programs that use the store. `misnamed` lists such runs.
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
  /**
   * The newest first. `limit`: how many are looked at; those that are misnamed are left out of the
   * answer.
   */
  heads(filter?: { limit?: number }): Promise<RunHead[]>;
  /** Ids of the runs that only `read` accepts, because they are not valid ids. */
  misnamed(): Promise<string[]>;
  /**
   * Takes the run for `owner` and raises its epoch, in one statement. Refused (claimed: false)
   * while another owner's lease is fresh, unless `force` (the caller has seen that the owner's
   * process is dead), and always when the run is done or cancelled, unless `ended`. `seen_epoch`:
   * refused too if the epoch has moved on since the caller looked, so that two resumes of one dead
   * run do not take it from each other. A created run becomes running; a failed one stays so until
   * `reopen`. A drain request of the old owner is forgotten, a cancel request is not. The journal's
   * version becomes this Holdfast's; one that is newer is refused.
   */
  claim(run: string, owner: Owner, options: ClaimOptions): Promise<Claimed>;
  /**
   * Claims the run that `choose` picks, in one transaction that excludes every other dequeue: two
   * engines see each other's choice. Null: it picked none, or one that may not be claimed.
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
   * Deletes rows, all or none, under the same fence; those that are gone already do not matter.
   * Seqs are not used again.
   */
  remove(run: string, epoch: number, seqs: number[]): Promise<Appended>;
  /**
   * Rows in order of seq; `newest_first` turns it round, so that `limit: 1` is the last such row.
   * `prefix`: of the key. `after_seq` is exclusive.
   */
  read(run: string, query?: ReadQuery): Promise<JournalRow[]>;
  /**
   * Asks the owner to cancel or drain. Cancelling a run that nobody owns (its `owner` is null)
   * takes effect at once; draining one, or asking anything of an ended run, changes nothing.
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
   * Of a run that has ended in this epoch already it answers the status that stands.
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
