/**
 * The life of a run, defined once for every database: who may claim it, and what a request, an end
 * or a release does. Each step is one UPDATE, so nothing happens between its condition and its
 * effect.
 *
 * created -> running -> done | failed | cancelled; failed -> running (`reopen`). Another engine can
 * claim an owned run only after its lease, or by force.
 */
import { JOURNAL_VERSION } from "./journal_version.ts";
import type { FinalStatus, RunHead } from "./store.ts";

/** How a database spells the parts of the steps. */
export type Dialect = {
  /** The parameters of one statement, in their order. */
  parameters<N extends string>(...names: N[]): Record<N, string>;
  now: string;
  /** A literal of JSON. */
  json(text: string): string;
  /** Whether a request of this kind is open; and the requests plus one of this kind. */
  hasRequest(kind: string): string;
  withRequest(kind: string): string;
  /** Which process the owner is. */
  owner_boot_id: string;
};

/** Waits for an engine, or has one. */
export const UNFINISHED = "status IN ('created', 'running')";
/** Not ended permanently: a failed run can be opened again. */
const OPEN = "status NOT IN ('done', 'cancelled')";
const UPDATE = "UPDATE runs SET";

/** The statements of each step. A statement whose condition does not hold returns nothing. */
export function runLife(dialect: Dialect) {
  const { now } = dialect;
  const cancels = dialect.hasRequest("'cancel'");
  const freed = `owner = NULL, lease_until_ms = 0, requests = '[]', updated_ms = ${now}`;
  const parameters = dialect.parameters("run", "epoch");
  return {
    claim: claim(dialect),
    owned: owned(parameters),
    finish: finish(dialect, freed),
    request: request(dialect),
    signal: signal(dialect),
    renew: renew(dialect),
    release: `${UPDATE} ${freed},
        status = CASE WHEN ${cancels} AND status <> 'done' THEN 'cancelled' ELSE status END
      WHERE ${owned(parameters)} RETURNING id`,
    reopen: `${UPDATE} status = 'running', error = NULL, updated_ms = ${now}
      WHERE ${owned(parameters)} AND ${OPEN} RETURNING last_seq`,
  };
}

/** The fence. A finished or released run has no owner: nobody appends to it under the old epoch. */
function owned({ run, epoch }: { run: string; epoch: string }): string {
  return `id = ${run} AND epoch = ${epoch} AND owner IS NOT NULL`;
}

/** In two parts, because a store may combine a claim with something else. */
function claim({ parameters, now, json, hasRequest, owner_boot_id }: Dialect) {
  const names = ["run", "owner", "boot_id", "lease_ms", "force", "seen_epoch", "ended"] as const;
  const { run, owner, boot_id, lease_ms, force, seen_epoch, ended } = parameters(...names);
  return {
    set: `epoch = epoch + 1, owner = ${owner}, lease_until_ms = ${now} + ${lease_ms},
      updated_ms = ${now},
      status = CASE status WHEN 'created' THEN 'running' ELSE status END,
      requests = CASE WHEN ${hasRequest("'cancel'")} THEN ${json('["cancel"]')}
        ELSE ${json("[]")} END`, // A drain was meant for the old owner.
    where: `id = ${run} AND journal = ${JOURNAL_VERSION} AND (${OPEN} OR ${ended})
      AND epoch = coalesce(${seen_epoch}, epoch)
      AND (owner IS NULL OR lease_until_ms <= ${now} OR ${force} OR ${owner_boot_id} = ${boot_id})`,
  };
}

function renew({ parameters, now }: Dialect): string {
  const { run, epoch, lease_ms } = parameters("run", "epoch", "lease_ms");
  return `${UPDATE} lease_until_ms = ${now} + ${lease_ms}
    WHERE ${owned({ run, epoch })} RETURNING requests`;
}

/** Cancelling an unowned run takes effect immediately; otherwise the owner reads the request. */
function request({ parameters, now, hasRequest, withRequest }: Dialect): string {
  const { run, kind } = parameters("run", "kind");
  return `${UPDATE} updated_ms = ${now},
      status = CASE WHEN owner IS NULL THEN 'cancelled' ELSE status END,
      requests = CASE WHEN owner IS NULL OR ${hasRequest(kind)} THEN requests
        ELSE ${withRequest(kind)} END
    WHERE id = ${run} AND ${OPEN} AND ((${UNFINISHED} AND ${kind} = 'cancel') OR owner IS NOT NULL)
    RETURNING *`;
}

/** The place of the signal's row. Its sender need not own the run; the first of a name stays. */
function signal({ parameters, now }: Dialect): string {
  const { run, name } = parameters("run", "name");
  return `${UPDATE} last_seq = last_seq + 1, updated_ms = ${now}
    WHERE id = ${run} AND ${OPEN} AND NOT EXISTS (
      SELECT 1 FROM journal WHERE run_no = runs.no AND kind = 'signal' AND key = ${name})
    RETURNING no, epoch, last_seq, updated_ms`;
}

/** A cancel that was requested first wins. */
function finish({ parameters, hasRequest }: Dialect, freed: string): string {
  const { run, epoch, status, error } = parameters("run", "epoch", "status", "error");
  const cancels = hasRequest("'cancel'");
  return `${UPDATE} status = CASE WHEN ${cancels} THEN 'cancelled' ELSE ${status} END,
      error = CASE WHEN ${cancels} OR ${status} <> 'failed' THEN NULL ELSE ${error} END, ${freed}
    WHERE ${owned({ run, epoch })} AND ${OPEN} RETURNING status`;
}

/** Waits for an engine, or has one. */
export function isUnfinished(status: RunHead["status"]): status is "created" | "running" {
  return status === "created" || status === "running";
}

/** Ended permanently: a failed run can be opened again. */
export function hasEnded({ status }: Pick<RunHead, "status">): boolean {
  return status === "done" || status === "cancelled";
}

/**
 * The state of a run that `finish` did not change: it has already ended in this epoch, or belongs
 * to another engine.
 */
export function endedAs(
  head: RunHead,
  epoch: number,
): { fenced: true } | { fenced: false; status: FinalStatus } {
  const { status } = head;
  if (head.epoch !== epoch || isUnfinished(status)) return { fenced: true };
  return { fenced: false, status };
}
