/**
 * Workers outlive their engine for a grace period, so that another engine can adopt them. This file
 * ends them if no engine will.
 */
import { cancelRun, processOwner, type RunHead, systemClock } from "../engine/mod.ts";
import { endWorkersOf } from "../workers/mod.ts";
import type { Home } from "./home.ts";
import { removeLeftovers } from "./leftovers.ts";

const CANCEL_LEASE_MS = 10_000;

/**
 * Cancels a run like `cancelRun`. If that takes effect immediately, it also ends the workers that
 * the last engine left.
 */
export async function cancelAndEnd(home: Home, run: string): Promise<RunHead> {
  const head = await cancelRun(home.store, run, { lease_ms: CANCEL_LEASE_MS });
  if (head.status !== "cancelled") return head;
  await endWorkersOf(home.dir, run, { clock: systemClock });
  await removeLeftovers(home, run, () => {}); // gc reports what stays.
  return head;
}

/**
 * A store that does not answer must not delay an immediate end: the workers then end by themselves,
 * after their grace period.
 */
const PATIENCE_MS = 2000;

/** For a process that stops immediately: also stops the workers of the runs it still owns. */
export async function endOwnWorkers(home: Home): Promise<void> {
  const { boot_id } = processOwner();
  const ended = home.store.heads().then((heads) =>
    Promise.all(
      heads.filter(({ owner }) => owner?.boot_id === boot_id)
        .map(({ id }) => endWorkersOf(home.dir, id, { clock: systemClock })),
    )
  );
  await Promise.race([ended.catch(() => {}), systemClock.sleep(PATIENCE_MS)]);
}
