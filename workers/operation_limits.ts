import { type Clock, type EngineError, NoProgressError, TimeoutError_ } from "../engine/mod.ts";
import { hangText } from "./failures.ts";
import type { Running } from "./inheritance.ts";

export type Limited = {
  clock: Clock;
  /** Where the agent puts the stacks of ranks that hang. */
  place: { run: string; group: string; generation: number; logDir: string };
  limitMs: number;
  /** Ends the watch. */
  signal: AbortSignal;
  /** Past the limit: the ranks are taken for hung. */
  hung: (running: Running, error: EngineError) => void;
};

/** The longest that an operation may take from now on. `since`: what was done to it now. */
export function limitTime(running: Running, limited: Limited & { since: "started" | "cancelled" }): void {
  const { clock, place, limitMs, signal, hung, since } = limited;
  const { group } = place;
  const text = `Cannot finish '${running.op}' on ${group} as it still runs ${limitMs} ms after it was ${since}`;
  const over = () =>
    hung(running, new TimeoutError_(hangText(text, place), { group, op: running.op, limit_ms: limitMs }));
  clock.sleep(limitMs, signal).then(over, () => {});
}

/** The longest that no rank of an operation may show progress. */
export function limitSilence(running: Running, { clock, place, limitMs, signal, hung }: Limited): void {
  const { group } = place;
  const watch = async () => {
    for (let left = limitMs; left > 0; left = running.progressedAt + limitMs - clock.monotonic()) {
      await clock.sleep(left, signal);
    }
    const text = `Cannot finish '${running.op}' on ${group} as nothing has moved for ${limitMs} ms`;
    hung(running, new NoProgressError(hangText(text, place), { group, op: running.op, limit_ms: limitMs }));
  };
  watch().catch(() => {}); // The operation is over.
}
