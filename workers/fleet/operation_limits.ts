import type { Clock, EngineError } from "../../engine/mod.ts";
import { type Hang, hangError } from "../failures/hangs.ts";
import type { Running } from "./inheritance.ts";

export type Limited = {
  clock: Clock;
  /** Where the agent puts the stacks of ranks that hang. */
  place: { run: string; group: string; generation: number; log_dir: string };
  limit_ms: number;
  /** Ends the watch. */
  signal: AbortSignal;
  /** Called past the limit: the ranks count as hung. */
  hung: (running: Running, error: EngineError) => void;
  /** What is currently known about the ranks. */
  hang: () => Hang;
};

/**
 * Limits how long an operation may take from now on. `since`: what just happened to it. `setting`:
 * where the limit comes from, if a user set it.
 */
export function limitTime(
  running: Running,
  limited: Limited & { since: "started" | "cancelled"; setting?: string },
): void {
  const { clock, place, limit_ms, signal, hung, hang, since, setting } = limited;
  const { op } = running;
  const text =
    `Cannot finish '${op}' on ${place.group} because it still runs ${limit_ms} ms after it ` +
    `was ${since}${setting === undefined ? "" : `: ${setting} allows no more`}`;
  const over = () =>
    hung(running, hangError(text, { ...place, op, limit_ms, limit: "time" }, hang()));
  clock.sleep(limit_ms, signal).then(over, () => {});
}

/** Limits how long an operation may go without progress of any rank. */
export function limitSilence(
  running: Running,
  { clock, place, limit_ms, signal, hung, hang }: Limited,
): void {
  const { op } = running;
  const watch = async () => {
    for (
      let remaining_ms = limit_ms;
      remaining_ms > 0;
      remaining_ms = running.progressed_ms + limit_ms - clock.monotonic()
    ) {
      await clock.sleep(remaining_ms, signal);
    }
    const text =
      `Cannot finish '${op}' on ${place.group} because it has made no progress for ${limit_ms} ms`;
    hung(running, hangError(text, { ...place, op, limit_ms, limit: "progress" }, hang()));
  };
  watch().catch(() => {}); // The operation is over.
}
