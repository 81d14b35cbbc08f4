import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { type Clock, systemClock } from "../clock.ts";
import { InvalidInputError, RunOwnedError } from "../errors.ts";
import { checkJournal } from "./journal_version.ts";
import { hasEnded, isUnfinished } from "./run_life.ts";
import type { Owner, RunHead, Store } from "./store.ts";

/** `unknown`: the owner is on another host, or this system does not tell. */
export type Liveness = "alive" | "dead" | "unknown";
/** The displayed status: the store's, corrected by the state of its owner. */
export type ComputedStatus = "queued" | "running" | "interrupted" | "done" | "failed" | "cancelled";

/** What ownership needs from the system; tests pass in their own. */
export type OwnershipOptions = { clock?: Clock; alive?: (owner: Owner) => Liveness };

let thisProcess: Owner | undefined;

/** This process as an owner; the same value for as long as the process lives. */
export function processOwner(): Owner {
  const process_start = processStart(Deno.pid) ?? "unknown";
  thisProcess ??= { boot_id: crypto.randomUUID(), host: hostname(), pid: Deno.pid, process_start };
  return thisProcess;
}

/**
 * When a process started, as text that no other process of that pid shares: the machine's boot and
 * the clock ticks since then. Null if there is no such process (or only its zombie); undefined if
 * the system does not tell.
 */
export function processStart(pid: number): string | null | undefined {
  const boot = readProc("/proc/sys/kernel/random/boot_id");
  if (boot === null) return undefined; // No /proc: not Linux.
  const stat = readProc(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // Field 2 is the command in parentheses and may hold anything, so fields are counted after the
  // last one (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, ticks] = [fields[0], fields[19]]; // Fields 3 and 22.
  return state === "Z" || state === "X" ? null : `${boot.trim()}:${ticks}`;
}

function readProc(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch { // Absence is the answer that is asked for.
    return null;
  }
}

/** Whether the owner's process still runs: its pid exists and started when the owner did. */
export function ownerAlive(owner: Owner): Liveness {
  if (owner.host !== hostname()) return "unknown";
  const start = processStart(owner.pid);
  if (start === undefined || owner.process_start === "unknown") return "unknown";
  return start === owner.process_start ? "alive" : "dead";
}

/**
 * The status shown to people: unfinished without a living owner is `interrupted`, or `queued` if it
 * waits for an engine of its queue. An owner that cannot be observed counts as alive while its
 * lease lasts.
 */
export function computedStatus(head: RunHead, options: OwnershipOptions = {}): ComputedStatus {
  const { status } = head;
  if (!isUnfinished(status)) return status;
  if (head.owner === null) return head.queue === null ? "interrupted" : "queued";
  const liveness = (options.alive ?? ownerAlive)(head.owner);
  if (liveness !== "unknown") return liveness === "alive" ? "running" : "interrupted";
  const now = (options.clock ?? systemClock).now();
  return head.lease_until_ms > now ? "running" : "interrupted";
}

/** How this process takes a run. */
export type TakeOptions = OwnershipOptions & {
  lease_ms: number;
  owner?: Owner;
  /** Also takes a run that is done or cancelled, to tidy it. */
  ended?: boolean;
};

/**
 * Takes a run for this process: immediately if its engine is dead; if it lives or cannot be
 * observed, only after its lease has expired.
 * @throws {RunOwnedError} While a living engine holds it (exit code 2).
 * @throws {InvalidInputError} If there is no such run, or it has ended permanently.
 */
export async function takeRun(store: Store, run: string, options: TakeOptions): Promise<RunHead> {
  const seen = await store.head(run);
  if (seen === null) {
    throw new InvalidInputError(`Cannot take run '${run}' because there is no such run`, {
      run,
    });
  }
  checkJournal(seen);
  const alive = options.alive ?? ownerAlive;
  const force = seen.owner !== null && alive(seen.owner) === "dead";
  const owner = options.owner ?? processOwner();
  const { lease_ms, ended } = options;
  const { claimed, head } = await store.claim(run, owner, {
    lease_ms,
    force,
    seen_epoch: seen.epoch,
    ended,
  });
  if (claimed) return head;
  if (!ended && hasEnded(head)) {
    throw new InvalidInputError(
      `Cannot take run '${run}' because it has ended: status is ${head.status}`,
      {
        run,
        status: head.status,
      },
    );
  }
  throw owned(head, (options.clock ?? systemClock).now());
}

function owned(head: RunHead, now: number): RunOwnedError {
  const { id, owner, lease_until_ms } = head;
  if (owner === null) {
    return new RunOwnedError(
      `Cannot take run '${id}' because another process has just taken it: try again`,
      {
        run: id,
      },
    );
  }
  const where = owner.host === hostname() ? "" : ` on ${owner.host}`;
  const lease_left_ms = Math.max(0, lease_until_ms - now);
  return new RunOwnedError(
    `Cannot take run '${id}' because engine process ${owner.pid}${where} owns it: its lease ` +
      "lasts another " +
      `${
        (lease_left_ms / 1000).toFixed(1)
      } s. Stop that process first (Ctrl-C there, or 'cancel ${id}')`,
    { run: id, pid: owner.pid, host: owner.host, lease_left_ms },
  );
}

/**
 * Whether no engine has claimed the run since `epoch`: a superseded engine touches no process and
 * no file.
 */
export async function stillOwns(store: Store, run: string, epoch: number): Promise<boolean> {
  return (await store.head(run))?.epoch === epoch;
}

/**
 * Cancels a run. A living owner receives a request and decides when; a run without an owner is
 * cancelled immediately, and so is a run whose owner is dead, or cannot be observed and has an
 * expired lease. Returns the resulting head.
 */
export async function cancelRun(store: Store, run: string, options: TakeOptions): Promise<RunHead> {
  const head = await store.request(run, "cancel");
  if (head.owner === null || computedStatus(head, options) !== "interrupted") return head;
  // If the owner cannot be observed, the lease decides, by the store's clock, because ours may be
  // wrong.
  const force = (options.alive ?? ownerAlive)(head.owner) === "dead";
  const claim = { lease_ms: options.lease_ms, force, seen_epoch: head.epoch };
  const taken = await store.claim(run, options.owner ?? processOwner(), claim);
  if (taken.claimed) await store.finish(run, taken.head.epoch, "cancelled");
  return await store.head(run) ?? head;
}
