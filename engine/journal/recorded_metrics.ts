/** Metrics as rows of the journal: what a body emitted, recorded with its result. */
import type { Emission } from "../graph/context.ts";

/** The round of the innermost loop around a scope. `loop`: its path, `round` or `outer/2/inner`. */
export type InRound = { loop: string; round: number };

/** Value of a `metrics` row; its key is that of the stage or step. */
export type RecordedMetrics = {
  at_ms: number;
  stage: string;
  /** Null outside loops. */
  loop: string | null;
  round: number | null;
  /**
   * Outside loops: paths of the loops that the stage's input comes from, `["warmup"]`: they have
   * ended. Absent in a round.
   */
  after?: readonly string[];
  /** What the numbers measure, as named by the stage. */
  version: string | null;
  metrics: Record<string, number>;
};

type Place = {
  at_ms: number;
  stage: string;
  in_round: InRound | null;
  after: readonly string[];
};

/**
 * What is recorded of an emission; null if it has no number to record. Numbers that are not finite
 * are omitted.
 */
export function recordedMetrics(
  { metrics = {}, version }: Emission,
  place: Place,
): RecordedMetrics | null {
  const finite = Object.entries(metrics).filter(([, value]) => Number.isFinite(value));
  if (finite.length === 0) return null;
  const { at_ms, stage, in_round, after } = place;
  const { loop = null, round = null } = in_round ?? {};
  return {
    at_ms,
    stage,
    loop,
    round,
    after: in_round === null ? after : undefined,
    version: version ?? null,
    metrics: Object.fromEntries(finite),
  };
}
