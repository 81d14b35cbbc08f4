/** When a failed attempt is retried. */
import type { ErrorJson } from "../errors.ts";
import type { Failure } from "../journal/tree.ts";
import { attemptsFor, type Stage } from "../graph/stage.ts";

/**
 * The longest wait before a second try, which doubles with every failure up to `max_ms`. A wait is
 * half of it and more.
 */
export type Backoff = { first_ms: number; max_ms: number };
export const DEFAULT_BACKOFF: Backoff = { first_ms: 500, max_ms: 60_000 };

/** These fail the same way in every engine, unless the stage's budget says otherwise. */
const BUDGET_DECIDES = new Set(["user_code", "bad_data"]);

/**
 * Even if a scheduler keeps preempting the workers, a stage that never finishes must fail at some
 * point.
 */
const UNCOUNTED_MAX = 50;

/**
 * Wall time of the next attempt, or null if the stage is given up. `failures`: those before this
 * one.
 */
export function nextAttempt(
  stage: Pick<Stage, "attempts_max">,
  failures: readonly Failure[],
  { error, now_ms, backoff, jitter }: {
    error: ErrorJson;
    now_ms: number;
    backoff: Backoff;
    jitter: number;
  },
): number | null {
  if (spent(stage, [...failures.map((failure) => failure.error), error])) return null;
  if (!error.retryable && !BUDGET_DECIDES.has(error.code)) return null;
  // Half of it fixed, half random: simultaneous retries spread out, and none is immediate.
  const delay = Math.min(backoff.max_ms, backoff.first_ms * 2 ** failures.length) *
    (0.5 + 0.5 * jitter);
  return now_ms + Math.round(delay);
}

/** Whether the last of these failures has used up the stage's budget. */
function spent(stage: Pick<Stage, "attempts_max">, errors: readonly ErrorJson[]): boolean {
  const last = errors.at(-1)!;
  if (last.counted === false) {
    return errors.filter(({ counted }) => counted === false).length >= UNCOUNTED_MAX;
  }
  const same = errors.filter(({ counted, cause_kind }) =>
    counted !== false && cause_kind === last.cause_kind
  );
  return same.length >= attemptsFor(stage, last.cause_kind);
}
