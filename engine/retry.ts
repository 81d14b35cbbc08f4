/** When a failed attempt is tried again. */
import type { ErrorJson } from "./errors.ts";
import type { Failure } from "./journal_tree.ts";
import { attemptsFor, type Stage } from "./stage.ts";

export type Backoff = { first_ms: number; max_ms: number };
export const DEFAULT_BACKOFF: Backoff = { first_ms: 500, max_ms: 60_000 };

/** These fail the same way in every engine, unless the stage's budget says otherwise. */
const BUDGET_DECIDES = new Set(["user_code", "bad_data"]);

/** Wall time of the next attempt, or null if the stage is given up. `failures`: those before this one. */
export function nextAttempt(
  stage: Pick<Stage, "attempts_max">,
  failures: readonly Failure[],
  { error, now_ms, backoff, jitter }: { error: ErrorJson; now_ms: number; backoff: Backoff; jitter: number },
): number | null {
  const same = failures.filter((failure) => failure.error.cause_kind === error.cause_kind).length + 1;
  if (same >= attemptsFor(stage, error.cause_kind)) return null;
  if (!error.retryable && !BUDGET_DECIDES.has(error.code)) return null;
  // Half of it fixed, half random: retries of one moment spread, and none comes at once.
  const delay = Math.min(backoff.max_ms, backoff.first_ms * 2 ** failures.length) * (0.5 + 0.5 * jitter);
  return now_ms + Math.round(delay);
}
