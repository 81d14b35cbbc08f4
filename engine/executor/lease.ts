/** Keeps this engine the run's owner while it executes, and obeys requests to the owner. */
import { CancelledError, FencedError } from "../errors.ts";
import type { Execution } from "./executor.ts";
import { recordedValue } from "../journal/recorded_value.ts";
import { sentSignal } from "../journal/signals.ts";
import type { Store } from "../stores/store.ts";

type Lease = {
  store: Store;
  lease_ms: number;
  /** How often it is extended. */
  renew_ms: number;
  /** Requests that were open when the run was claimed. */
  requests: readonly string[];
  signal: AbortSignal;
};

/** Extends the lease and obeys requests until the signal is aborted; then it rejects. */
export async function keepLease(execution: Execution, lease: Lease): Promise<never> {
  const { store, lease_ms, renew_ms, requests, signal } = lease;
  const { run, epoch, clock } = execution.settings;
  obey(execution, requests);
  for (;;) {
    await clock.sleep(renew_ms, signal);
    try {
      const renewed = await store.renew(run, epoch, lease_ms);
      if (renewed.fenced) execution.stop(takenOver(run, epoch));
      else obey(execution, renewed.requests);
      await pollSignals(execution, store);
    } catch (error) {
      // Late but not superseded: an owner keeps working, and the next append says whether the
      // store is back.
      execution.event({
        type: "log",
        key: "",
        text: `The lease could not be extended: ${(error as Error).message}`,
      });
    }
  }
}

export function obey(execution: Execution, requests: readonly string[]): void {
  const { run } = execution.settings;
  if (requests.includes("cancel")) {
    execution.stop(new CancelledError(`Cannot continue with run '${run}': it is cancelled`));
  } else if (requests.includes("drain")) execution.drain();
}

function takenOver(run: string, epoch: number): FencedError {
  return new FencedError(
    `Cannot continue with run '${run}' as epoch ${epoch}: another engine has taken over`,
    { run, epoch },
  );
}

/** A signal may have been sent to another process. */
async function pollSignals(execution: Execution, store: Store): Promise<void> {
  const { run, journal } = execution.settings;
  for (const name of execution.awaited) {
    const row = await sentSignal(store, run, name);
    if (row) execution.giveSignal(name, await journal.fetch(recordedValue(row)));
  }
}
