/** An engine that takes queued runs and executes them, several at once, until it is stopped. */
import { type Clock, systemClock } from "../clock.ts";
import { LEASE_MS } from "../engine.ts";
import {
  EngineError,
  type ErrorJson,
  errorToJson,
  InfrastructureError,
  LostRecordError,
} from "../errors.ts";
import { quietly } from "../executor/executor.ts";
import type { Outcome } from "../executor/outcome.ts";
import { checkJournal } from "../stores/journal_version.ts";
import { type Liveness, ownerAlive, processOwner } from "../stores/ownership.ts";
import { AGEING_MS, chooseRun, lacking, type QueueOptions } from "./queue.ts";
import type { Owner, RowKind, RunHead, Store } from "../stores/store.ts";

/**
 * The result of checking a run's entry: what to execute it with, or a sentence why this engine
 * cannot.
 */
export type Verdict<G> = { graph: G } | { refused: string };

/** A claimed run: `before` is its head in the store, `head` the claim's answer. */
export type Taken<G> = { before: RunHead; head: RunHead; graph: G };

/** What a serving engine does with the runs of its queues. */
export type ServeEvent =
  | { type: "taken"; run: string; epoch: number; from: Owner | null }
  | { type: "ended"; run: string; status: Outcome["status"]; error?: ErrorJson }
  | { type: "refused"; run: string; reason: string }
  /** It was released for now; this engine does not take it for `ms`. */
  | { type: "put_off"; run: string; reason: string; ms: number }
  | { type: "trouble"; reason: string };

/** Which queues an engine serves, and how it finds the graphs of their runs. */
export type ServeOptions<G> = {
  store: Store;
  /**
   * Queues to serve, with the maximum number of their concurrent runs over all engines; Infinity:
   * no limit.
   */
  queues: Readonly<Record<string, number>>;
  /** Finds a run's graph. Called once for each epoch of a run that is seen. */
  look(run: RunHead): Promise<Verdict<G>>;
  /** Executes a run that was claimed, to its end. */
  execute(taken: Taken<G>, drain: AbortSignal): Promise<Outcome>;
  /** Runs that this engine executes at once. */
  concurrency?: number;
  /** Slots of this host by name. */
  slots?: Readonly<Record<string, number>>;
  lease_ms?: number;
  /** How often the store is polled while there is nothing to take. */
  poll_ms?: number;
  ageing_ms?: number;
  /** Stop once every run that it could execute has ended, on any engine. */
  until_idle?: boolean;
  clock?: Clock;
  owner?: Owner;
  alive?: (owner: Owner) => Liveness;
  onEvent?: (event: ServeEvent) => void;
};

/**
 * Consecutive engines lost without a row of progress, after which a run is given up: it may be what
 * ends them.
 */
const TAKEOVERS_MAX = 3;
/**
 * An engine that ended sooner had no time to do anything, so an operator's restarts do not count
 * against a run.
 */
const WORKED_MS = 10_000;
/** The limit for these: a run whose engines never last that long is also given up. */
const TAKEOVERS_AT_ONCE_MAX = 20;
/** Rows that show that an engine made progress. */
const PROGRESS: RowKind[] = ["result", "failure", "checkpoint", "round"];
type Takeover = { lived_ms?: number | null };
const TAKEOVER = { kind: "note/takeover", key: "run" } as const;
/**
 * A run that this machine could not run (a full disk, an unreachable store) is retried, less and
 * less often.
 */
const PUT_OFF_MS = 1000;
const PUT_OFF_MS_MAX = 60_000;

/**
 * Serves queues until `drain` is aborted, then lets the runs in flight stop at their next durable
 * point and releases them. Settles when nothing is running here any more.
 */
export async function serveQueues<G>(options: ServeOptions<G>, drain: AbortSignal): Promise<void> {
  await new Server(options, drain).serve();
}

class Server<G> {
  readonly #options:
    & ServeOptions<G>
    & Required<Pick<ServeOptions<G>, "clock" | "owner" | "lease_ms" | "poll_ms">>;
  readonly #drain: AbortSignal;
  readonly #executing = new Map<string, Promise<void>>();
  /** For its epoch: another engine may have accepted, or changed, what decides them. */
  readonly #verdicts = new Map<string, Verdict<G> & { epoch: number }>();
  readonly #putOff = new Map<string, { until_ms: number; ms: number }>();
  /** Runs that this engine could run and that have not ended, as of the last poll. */
  #unfinished = 0;
  #wake = new AbortController();

  constructor(options: ServeOptions<G>, drain: AbortSignal) {
    const { clock = systemClock, owner = processOwner(), lease_ms = LEASE_MS, poll_ms = 1000 } =
      options;
    this.#options = { ...options, clock, owner, lease_ms, poll_ms };
    this.#drain = drain;
  }

  async serve(): Promise<void> {
    const { concurrency = 1, until_idle = false } = this.#options;
    const wake = () => this.#wake.abort();
    this.#drain.addEventListener("abort", wake);
    try {
      while (!this.#drain.aborted) {
        const taken = this.#executing.size < concurrency ? await this.#take() : null;
        if (taken) this.#start(taken);
        else if (until_idle && this.#executing.size === 0 && this.#unfinished === 0) break;
        else await this.#pause();
      }
    } finally {
      this.#drain.removeEventListener("abort", wake);
      await Promise.all(this.#executing.values());
    }
  }

  /**
   * The next run, claimed. A run that is seen for the first time, or was another engine's since, is
   * checked before anything is chosen.
   */
  async #take(): Promise<Taken<G> | null> {
    for (;;) {
      const choosing = this.#choosing();
      const { store, owner, lease_ms } = this.#options;
      let head: RunHead | null;
      try {
        head = await store.dequeue(owner, { lease_ms, choose: choosing.choose });
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        this.#emit({ type: "trouble", reason: error.message });
        // Trying again cannot help: every look at the queue reads the damaged run.
        if (error instanceof LostRecordError) throw error;
        this.#unfinished = Infinity; // Who cannot see the queue does not know that it is empty.
        return null;
      }
      for (const run of choosing.unknown) await this.#look(run);
      if (choosing.unknown.length > 0) continue;
      const before = choosing.before;
      const verdict = head && this.#verdicts.get(head.id);
      return head && before && verdict && "graph" in verdict
        ? { before, head, graph: verdict.graph }
        : null;
    }
  }

  /** What the transaction receives, and what it saw. */
  #choosing() {
    const { queues, slots = {}, ageing_ms = AGEING_MS, owner, alive = ownerAlive } = this.#options;
    const options: QueueOptions = {
      queues,
      slots,
      ageing_ms,
      owner,
      alive,
      executing: new Set(this.#executing.keys()),
      canRun: (run) => this.#canRun(run) && !this.#isPutOff(run),
    };
    const seen = {
      unknown: [] as RunHead[],
      before: undefined as RunHead | undefined,
      choose: (runs: RunHead[], now_ms: number) => {
        const ours = runs.filter(({ queue }) => queue !== null && Object.hasOwn(queues, queue));
        this.#forgetOthers(ours);
        seen.unknown = ours.filter(({ id, epoch }) =>
          this.#verdicts.get(id)?.epoch !== epoch && !this.#executing.has(id)
        );
        if (seen.unknown.length > 0) return null;
        this.#unfinished = ours.filter((run) => this.#canRun(run)).length;
        const choice = chooseRun(runs, options, now_ms);
        seen.before = runs.find(({ id }) => id === choice?.run);
        return choice;
      },
    };
    return seen;
  }

  #canRun({ id }: RunHead): boolean {
    const verdict = this.#verdicts.get(id);
    return verdict !== undefined && "graph" in verdict;
  }

  #isPutOff({ id }: RunHead): boolean {
    return (this.#putOff.get(id)?.until_ms ?? 0) > this.#options.clock.monotonic();
  }

  #forgetOthers(runs: readonly RunHead[]): void {
    const open = new Set(runs.map(({ id }) => id));
    for (const known of [this.#verdicts, this.#putOff]) {
      for (const id of known.keys()) {
        if (!open.has(id) && !this.#executing.has(id)) known.delete(id);
      }
    }
  }

  async #look(run: RunHead): Promise<void> {
    const { queues, slots = {}, look } = this.#options;
    const lacks = lacking(run, { queues, slots });
    const verdict: Verdict<G> = lacks === null
      ? await Promise.resolve(run).then(checkJournal).then(look).catch((error: Error) => ({
        refused: error.message,
      }))
      : { refused: `Cannot run '${run.id}' on this host: ${lacks}` };
    const before = this.#verdicts.get(run.id);
    this.#verdicts.set(run.id, { ...verdict, epoch: run.epoch });
    if (!("refused" in verdict)) return;
    const { refused: reason } = verdict;
    const isKnown = before && "refused" in before && before.refused === reason;
    if (!isKnown) this.#emit({ type: "refused", run: run.id, reason });
  }

  #start(taken: Taken<G>): void {
    const { id, epoch } = taken.head;
    this.#emit({ type: "taken", run: id, epoch, from: taken.before.owner });
    const ended = this.#execute(taken).catch((error) => this.#notRun(taken, error)).finally(() => {
      this.#executing.delete(id);
      this.#wake.abort();
    });
    this.#executing.set(id, ended);
  }

  async #execute(taken: Taken<G>): Promise<void> {
    const { before, head } = taken;
    const over = new AbortController();
    const keeping = quietly(this.#keepLease(head, over.signal));
    try {
      const last_seq = await this.#recordTakeover(taken);
      if (last_seq === null) return;
      const outcome = await this.#options.execute(
        { ...taken, before, head: { ...head, last_seq } },
        this.#drain,
      );
      const error = outcome.status === "failed" ? outcome.error : undefined;
      this.#emit({ type: "ended", run: head.id, status: outcome.status, error });
      // A run that was released without being lost must not be taken again immediately, over and
      // over.
      if (outcome.status !== "fenced") this.#defer(head.id);
    } finally {
      over.abort();
      await keeping.catch(() => {});
    }
  }

  /**
   * From the claim on, even before the run's own engine is up, because reading its rows may take
   * longer than a lease.
   */
  async #keepLease({ id, epoch }: RunHead, signal: AbortSignal): Promise<void> {
    const { store, clock, lease_ms } = this.#options;
    for (;;) {
      await clock.sleep(lease_ms / 4, signal);
      // Writes find out whether it still owns the run and whether the store is available.
      await store.renew(id, epoch, lease_ms).catch(() => {});
    }
  }

  /**
   * The journal's last seq once the takeover is recorded; null if the run was given up instead, or
   * lost again.
   */
  async #recordTakeover({ before, head }: Taken<G>): Promise<number | null> {
    const { store, owner } = this.#options;
    const from = before.owner;
    if (from === null || from.boot_id === owner.boot_id) return head.last_seq;
    const { fruitless, all } = await fruitlessTakeovers(store, head.id);
    if (fruitless >= TAKEOVERS_MAX || all >= TAKEOVERS_AT_ONCE_MAX) {
      await this.#fail(head, crashLoop(head.id, all));
      return null;
    }
    const lived_ms = await this.#livedMs(before);
    const value = JSON.stringify({
      pid: from.pid,
      host: from.host,
      epoch: before.epoch,
      fruitless,
      lived_ms,
    });
    const appended = await store.append(head.id, head.epoch, [{ ...TAKEOVER, value }]);
    return appended.fenced ? null : appended.last_seq;
  }

  /**
   * Time from a lost engine's takeover to the last extension of its lease; null: the time of the
   * takeover is not recorded.
   */
  async #livedMs({ id, epoch, lease_until_ms }: RunHead): Promise<number | null> {
    const rows = await this.#options.store.read(id, { kinds: [TAKEOVER.kind] });
    const took = rows.find((row) => row.epoch === epoch);
    return took ? Math.max(0, lease_until_ms - this.#options.lease_ms - took.at_ms) : null;
  }

  /**
   * `execute` threw: the run has not ended. A temporary failure is retried later, any other one
   * fails the run.
   */
  async #notRun({ head }: Taken<G>, error: unknown): Promise<void> {
    try {
      if (!isOfThisMachine(error)) {
        return await this.#fail(head, errorToJson(error));
      }
      const ms = this.#defer(head.id);
      this.#emit({ type: "put_off", run: head.id, reason: error.message, ms });
      await this.#options.store.release(head.id, head.epoch);
    } catch (cause) {
      // The store cannot be reached: this engine keeps the run until it resumes it or the lease
      // expires.
      this.#emit({ type: "trouble", reason: (cause as Error).message });
    }
  }

  /** How long this engine leaves the run alone: twice as long as the last time. */
  #defer(run: string): number {
    const ms = Math.min(PUT_OFF_MS_MAX, 2 * (this.#putOff.get(run)?.ms ?? PUT_OFF_MS / 2));
    this.#putOff.set(run, { until_ms: this.#options.clock.monotonic() + ms, ms });
    return ms;
  }

  async #fail({ id, epoch }: RunHead, error: ErrorJson): Promise<void> {
    const ended = await this.#options.store.finish(id, epoch, "failed", JSON.stringify(error));
    this.#emit({ type: "ended", run: id, status: ended.fenced ? "fenced" : ended.status, error });
  }

  /** Until the next poll is due, a run ends, or this engine is stopped. */
  async #pause(): Promise<void> {
    const { clock, poll_ms } = this.#options;
    if (!this.#drain.aborted && !this.#wake.signal.aborted) {
      await clock.sleep(poll_ms, this.#wake.signal).catch(() => {}); // Woken.
    }
    this.#wake = new AbortController();
  }

  #emit(event: ServeEvent): void {
    this.#options.onEvent?.(event);
  }
}

/**
 * How often the run was taken over since its last row of progress; `fruitless`: from engines that
 * had time to work.
 */
async function fruitlessTakeovers(
  store: Store,
  run: string,
): Promise<{ fruitless: number; all: number }> {
  const [progress] = await store.read(run, { kinds: PROGRESS, newest_first: true, limit: 1 });
  const rows = await store.read(run, { kinds: [TAKEOVER.kind], after_seq: progress?.seq ?? 0 });
  const worked = rows.filter(({ value }) =>
    ((JSON.parse(value) as Takeover).lived_ms ?? Infinity) >= WORKED_MS
  );
  return { fruitless: worked.length, all: rows.length };
}

/** Whether another try, here or elsewhere, may succeed. Retrying never restores a lost record. */
function isOfThisMachine(error: unknown): error is EngineError {
  return error instanceof EngineError && error.cause_kind === "infrastructure" &&
    !(error instanceof LostRecordError);
}

function crashLoop(run: string, takeovers: number): ErrorJson {
  return new InfrastructureError(
    `Cannot continue with run '${run}' because its engine died or froze, and so did the ` +
      `${takeovers} engines that took it over, without a result in between. Find out what ended ` +
      "them (out of memory?), then 'resume' the run",
    { run, takeovers },
    { retryable: false },
  ).toJSON();
}
