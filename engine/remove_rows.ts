import { canonicalJson } from "./canonical.ts";
import { FencedError } from "./errors.ts";
import { type TakeOptions, takeRun } from "./stores/ownership.ts";
import type { Store } from "./stores/store.ts";

/** Rows that are removed at once. */
const PAGE_ROWS = 5000;

type RemoveOptions = TakeOptions & {
  seqs: readonly number[];
  /** Recorded in the `note/gc` row, which is durable before the first row is removed. */
  note: Record<string, unknown>;
  /**
   * Called after that: whether the plan still holds. Anything that needs the run from then on sees
   * the note.
   */
  holds: () => Promise<boolean>;
};

/**
 * Removes rows of a run that has ended, under a separate claim. If it is killed, the next call
 * removes the rest. False: the plan no longer held, and nothing was removed.
 * @throws {RunOwnedError} While another process tidies it.
 */
export async function removeRows(
  store: Store,
  run: string,
  { seqs, note, holds, ...take }: RemoveOptions,
): Promise<boolean> {
  const { epoch } = await takeRun(store, run, { ...take, ended: true });
  try {
    const value = canonicalJson({ ...note, rows: seqs.length });
    kept(await store.append(run, epoch, [{ kind: "note/gc", key: "rows", value }]), run);
    if (!await holds()) return false;
    for (let from = 0; from < seqs.length; from += PAGE_ROWS) {
      kept(await store.remove(run, epoch, seqs.slice(from, from + PAGE_ROWS)), run);
    }
    return true;
  } finally {
    await store.release(run, epoch);
  }
}

function kept({ fenced }: { fenced: boolean }, run: string): void {
  if (fenced) {
    throw new FencedError(`Cannot tidy run '${run}' because another process has taken it`, { run });
  }
}
