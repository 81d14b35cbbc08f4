import type { Clock, EngineError } from "../engine/mod.ts";
import { type Hang, hangError } from "./hangs.ts";
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
  /** What is known of the ranks now. */
  hang: () => Hang;
};

/** The longest that an operation may take from now on. `since`: what was done to it now. */
export function limitTime(running: Running, limited: Limited & { since: "started" | "cancelled" }): void {
  const { clock, place, limitMs, signal, hung, hang, since } = limited;
  const { op } = running;
  const text = `Cannot finish '${op}' on ${place.group} because it still runs ${limitMs} ms after it was ${since}`;
  const over = () => hung(running, hangError(text, { ...place, op, limit_ms: limitMs, limit: "time" }, hang()));
  clock.sleep(limitMs, signal).then(over, () => {});
}

/** The longest that no rank of an operation may show progress. */
export function limitSilence(running: Running, { clock, place, limitMs, signal, hung, hang }: Limited): void {
  const { op } = running;
  const watch = async () => {
    for (let left = limitMs; left > 0; left = running.progressedAt + limitMs - clock.monotonic()) {
      await clock.sleep(left, signal);
    }
    const text = `Cannot finish '${op}' on ${place.group} because nothing has moved for ${limitMs} ms`;
    hung(running, hangError(text, { ...place, op, limit_ms: limitMs, limit: "progress" }, hang()));
  };
  watch().catch(() => {}); // The operation is over.
}
