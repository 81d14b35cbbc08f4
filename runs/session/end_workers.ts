/**
 * Workers outlive their engine for a grace period, so that another engine can adopt them. This file
 * ends them if no engine will.
 */
import { cancelRun, processOwner, type RunHead, systemClock } from "../../engine/mod.ts";
import { endWorkersOf } from "../../workers/mod.ts";
import type { Home } from "../home/home.ts";
import { removeLeftovers } from "../garbage/leftovers.ts";

const LEASE_MS = 10_000;

/**
 * Cancels a run like `cancelRun`. If that takes effect immediately, it also ends the workers that
 * the last engine left.
 */
export async function cancelAndEnd(home: Home, run: string): Promise<RunHead> {
  const head = await cancelRun(home.store, run, { lease_ms: LEASE_MS });
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

/**
 * For a process that stops immediately: gives up the runs that it still owns and ends their
 * workers. Before that it fences its own engine, so that no death of a worker is recorded as a
 * failure. Nobody else can take a run, and meet its dying workers, before they have ended.
 */
export async function abandonOwnRuns(home: Home): Promise<void> {
  const owner = processOwner();
  const abandon = async ({ id, epoch }: RunHead) => {
    const fenced = await home.store.claim(id, owner, { lease_ms: LEASE_MS, seen_epoch: epoch });
    if (!fenced.claimed) return;
    await endWorkersOf(home.dir, id, { clock: systemClock });
    await home.store.release(id, fenced.head.epoch);
  };
  const abandoned = home.store.heads().then((heads) =>
    Promise.all(heads.filter((head) => head.owner?.boot_id === owner.boot_id).map(abandon))
  );
  await Promise.race([abandoned.catch(() => {}), systemClock.sleep(PATIENCE_MS)]);
}
