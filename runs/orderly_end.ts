/** How a session ends, whatever ends it: with its metrics and its newest policies saved. */
import type { NewRow } from "../engine/mod.ts";
import type { Caller, PolicyTrainer } from "../workers/mod.ts";

/** What ends with a session. */
type Ending = {
  /** Once aborted, the session is to end. */
  drain?: AbortSignal;
  /** Asked then: true if the machine is about to go. */
  preempted?: () => boolean;
  closeMetrics: () => Promise<void>;
  /** Saves the newest policies. */
  saveNow: () => Promise<void>;
  stopWorkers: () => Promise<void>;
};

/** What ends a session, once, however it ends: metrics, the newest policy, the workers. */
export function orderlyEnd(ending: Ending): () => Promise<void> {
  const { drain, preempted, closeMetrics, saveNow, stopWorkers } = ending;
  let stopped: Promise<void> | undefined;
  let saved: Promise<void> = Promise.resolve();
  const saveIfPreempted = () => {
    if (preempted?.()) saved = saveNow();
  };
  // At once too: what is in flight may take longer than the machine is left to us.
  drain?.addEventListener("abort", saveIfPreempted, { once: true });
  const endInOrder = async () => {
    await closeMetrics();
    drain?.removeEventListener("abort", saveIfPreempted);
    await saved;
    // Who resumes it need not redo what was trained since the last checkpoint.
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
 * Saves the newest policy of each trainer. A failure costs nothing but time: what is recorded makes
 * the policy again.
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
