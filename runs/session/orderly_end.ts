/** How a session ends, for any reason: with its metrics and its newest policies saved. */
import type { NewRow } from "../../engine/mod.ts";
import type { Caller, PolicyTrainer } from "../../workers/mod.ts";

/** What ends with a session. */
type Ending = {
  /** Once aborted, the session must end. */
  drain?: AbortSignal;
  /** Asked at that time: true if the machine is about to be reclaimed. */
  preempted?: () => boolean;
  closeMetrics: () => Promise<void>;
  /** Saves the newest policies. */
  saveNow: () => Promise<void>;
  stopWorkers: () => Promise<void>;
};

/** Ends a session, once, for any reason: metrics, the newest policy, the workers. */
export function orderlyEnd(ending: Ending): () => Promise<void> {
  const { drain, preempted, closeMetrics, saveNow, stopWorkers } = ending;
  let stopped: Promise<void> | undefined;
  let saved: Promise<void> = Promise.resolve();
  const saveIfPreempted = () => {
    if (preempted?.()) saved = saveNow();
  };
  // Also immediately: the work in flight may outlast the machine.
  drain?.addEventListener("abort", saveIfPreempted, { once: true });
  const endInOrder = async () => {
    await closeMetrics();
    drain?.removeEventListener("abort", saveIfPreempted);
    await saved;
    // So a resume need not redo what was trained since the last checkpoint.
    if (drain?.aborted) saved = saveNow();
    await saved;
    await stopWorkers();
  };
  return () => stopped ??= endInOrder();
}

/** The key of rows and logs of what is saved before the workers end. */
export const PREEMPTED = "preempted";

type Saving = { record: (rows: NewRow[]) => Promise<void>; log: (text: string) => void };

/**
 * Saves the newest policy of each trainer. A failure costs only time, because the record is enough
 * to rebuild the policy.
 */
export async function saveBeforeEnd(
  trainers: readonly Pick<PolicyTrainer, "saveNow">[],
  { record, log }: Saving,
): Promise<void> {
  const caller: Caller = {
    key: PREEMPTED,
    attempt: 1,
    record: (kind, key, value) => record([{ kind, key, value: JSON.stringify(value) }]),
  };
  await Promise.all(trainers.map(async (trainer) => {
    try {
      const saved = await trainer.saveNow(caller);
      if (saved) log(`saved ${saved.dir} before the workers end`);
    } catch (error) {
      log(`no checkpoint was saved before the workers end: ${(error as Error).message}`);
    }
  }));
}
