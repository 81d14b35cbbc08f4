/**
 * Which queued run an engine takes next. Pure: every driver calls it inside the transaction that
 * claims the run.
 */
import type { Liveness } from "../stores/ownership.ts";
import { isUnfinished } from "../stores/run_life.ts";
import type { Owner, RunHead } from "../stores/store.ts";

export type QueueOptions = {
  /** The engine that asks. */
  owner: Owner;
  /** Queues that it serves, with the maximum number of their concurrent runs over all engines. */
  queues: Readonly<Record<string, number>>;
  /**
   * Slots of this host by name; there are none of names that are not listed. Shared by all engines
   * of the host.
   */
  slots: Readonly<Record<string, number>>;
  /**
   * A run's priority rises by one each time it has waited this long. A run that has waited this
   * long is no longer passed by smaller ones: what it needs is kept free until it fits.
   */
  ageing_ms: number;
  /** Runs that this process executes right now. */
  executing: ReadonlySet<string>;
  /** Whether this engine has the run's entry and graph. */
  canRun: (run: RunHead) => boolean;
  alive: (owner: Owner) => Liveness;
};

/** `force`: the owner's process is known to be dead, so its lease does not count. */
export type Choice = { run: string; force: boolean };

/**
 * Who has a run. `held`: a living engine, or one that cannot be observed within its lease. `dead`,
 * `expired`: to be taken over. `dropped`: this process owns it but does not execute it.
 */
type Holder = "nobody" | "held" | "dead" | "expired" | "dropped";

/** Default of `ageing_ms`: ten minutes. */
export const AGEING_MS = 600_000;

/**
 * The run to take next, null if none may be taken now. Runs of lost engines come first, then the
 * highest priority, then the longest waiting. The order of `runs` does not matter.
 */
export function chooseRun(
  runs: readonly RunHead[],
  options: QueueOptions,
  now_ms: number,
): Choice | null {
  const holders = new Map(runs.map((run) => [run.id, holderOf(run, options, now_ms)]));
  const open = new Set(
    runs.filter((run) => isOffered(run, options) && holders.get(run.id) !== "held"),
  );
  const room = new Room(options);
  for (const run of runs) if (!open.has(run) && keeps(holders.get(run.id)!)) room.hold(run);
  const ordered = queueOrder([...open], options.ageing_ms, now_ms);
  const lost = (run: RunHead) => holders.get(run.id) !== "nobody";
  for (const run of [...ordered.filter(lost), ...ordered.filter((run) => !lost(run))]) {
    if (room.fits(run)) return { run: run.id, force: holders.get(run.id) === "dead" };
    const aged = now_ms - run.created_ms >= options.ageing_ms;
    if (lacking(run, options) === null && (lost(run) || aged)) room.reserve(run);
  }
  return null;
}

/**
 * Waiting runs in the order in which they are considered: priority with age, then time, then id.
 */
export function queueOrder(runs: readonly RunHead[], ageing_ms: number, now_ms: number): RunHead[] {
  const rank = (run: RunHead) =>
    run.priority + Math.floor(Math.max(0, now_ms - run.created_ms) / ageing_ms);
  return runs.toSorted((a, b) =>
    rank(b) - rank(a) || a.created_ms - b.created_ms || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
  );
}

/** Whether the run waits for an engine: it is queued, unfinished and unowned. */
export function isQueued(run: RunHead): boolean {
  return run.queue !== null && run.owner === null && isUnfinished(run.status);
}

/** What an otherwise idle host lacks for the run, as text; null if it lacks nothing. */
export function lacking(
  { queue, needs }: RunHead,
  { queues, slots }: Pick<QueueOptions, "queues" | "slots">,
): string | null {
  if (queues[queue!]! < 1) return `queue '${queue}' has no place`;
  const missing = Object.entries(needs).find(([name, count]) => count > (slots[name] ?? 0));
  return missing
    ? `it needs ${missing[1]} of '${missing[0]}', this host has ${slots[missing[0]] ?? 0}`
    : null;
}

function isOffered(run: RunHead, { queues, canRun }: QueueOptions): boolean {
  return run.queue !== null && Object.hasOwn(queues, run.queue) && canRun(run);
}

function holderOf(run: RunHead, { owner, executing, alive }: QueueOptions, now_ms: number): Holder {
  if (run.owner === null) return "nobody";
  if (run.owner.boot_id === owner.boot_id) return executing.has(run.id) ? "held" : "dropped";
  if (alive(run.owner) === "dead") return "dead";
  return run.lease_until_ms <= now_ms ? "expired" : "held";
}

/** Whether the run's processes may still exist, although this engine cannot take it. */
function keeps(holder: Holder): boolean {
  return holder === "held" || holder === "expired" || holder === "dropped";
}

/** The remaining places of the queues and slots of the host. */
class Room {
  readonly #places: Map<string, number>;
  readonly #slots: Map<string, number>;

  constructor(readonly options: QueueOptions) {
    this.#places = new Map(Object.entries(options.queues));
    this.#slots = new Map(Object.entries(options.slots));
  }

  /** A running run takes a place of its queue and slots of its host. */
  hold(run: RunHead): void {
    this.#takePlace(run);
    if (run.owner?.host === this.options.owner.host) this.#takeSlots(run);
  }

  /** The next waiting run: later ones must not use what it needs here. */
  reserve(run: RunHead): void {
    this.#takePlace(run);
    this.#takeSlots(run);
  }

  #takePlace({ queue }: RunHead): void {
    if (queue !== null && this.#places.has(queue)) {
      this.#places.set(queue, this.#places.get(queue)! - 1);
    }
  }

  #takeSlots({ needs }: RunHead): void {
    for (const [name, count] of Object.entries(needs)) {
      this.#slots.set(name, (this.#slots.get(name) ?? 0) - count);
    }
  }

  fits({ queue, needs }: RunHead): boolean {
    if (this.#places.get(queue!)! < 1) return false;
    return Object.entries(needs).every(([name, count]) =>
      count <= 0 || count <= (this.#slots.get(name) ?? 0)
    );
  }
}
