import type { TrackPoint } from "../tracking/track_points.ts";

/** What x may be, and how a plot calls it. */
export const X_LABELS = {
  round: "round",
  tokens: "trained tokens",
  hours: "hours since the first metric",
  step: "step",
} as const;
export type CurveX = keyof typeof X_LABELS;

/** `gap`: values are missing between the previous point and this. */
export type CurvePoint = { x: number; y: number; gap?: true };

const TOKENS = "perf/trained_tokens";

/** Beyond, differences of numbers are no numbers. */
const SIZE_MAX = 1e300;

/**
 * The values of a metric in the order in which they were measured; those that are no numbers are
 * left out. By round, a value outside the loop is at the round before it.
 */
export function metricCurve(
  points: readonly TrackPoint[],
  { metric, by }: { metric: string; by: CurveX },
): CurvePoint[] {
  const measured = measuring(points, metric);
  const loop = measured.find(({ round }) => round !== null)?.round?.loop;
  const gaps = roundsWithGaps(measured);
  const start_ms = points[0]?.at_ms ?? 0;
  let [tokens, last] = [0, 0];
  return points.flatMap((point) => {
    const { step, round, at_ms, metrics } = point;
    tokens += metrics[TOKENS] ?? 0;
    if (round?.loop === loop) last = round?.round ?? last;
    const x = { round: last, step, tokens, hours: (at_ms - start_ms) / 3_600_000 }[by];
    if (!isDrawable(metrics[metric]) || !isDrawable(x)) return [];
    return [{ x, y: metrics[metric], ...(gaps.has(point) && { gap: true as const }) }];
  });
}

/** Why this cannot be the metric's x; null: it can. */
export function whyNotBy(
  by: CurveX,
  { points, metric }: { points: readonly TrackPoint[]; metric: string },
): string | null {
  if (by === "tokens" && !points.some(({ metrics }) => isDrawable(metrics[TOKENS]))) {
    return `it has no ${TOKENS}`;
  }
  if (by !== "round") return null;
  const measured = measuring(points, metric);
  const [one, other] = new Set(measured.flatMap(({ round }) => round === null ? [] : round.loop));
  if (one === undefined) return "it was measured in no round";
  return other === undefined ? null : `its rounds are of the loops ${one} and ${other}`;
}

/**
 * The points that a line does not lead to. A metric that most rounds have should be in all; of one
 * that is measured more rarely, such as an evaluation, nobody knows.
 */
function roundsWithGaps(measured: readonly TrackPoint[]): Set<TrackPoint> {
  const distances = measured.slice(1).map((point, i) => {
    const [before, here] = [measured[i]!.round, point.round];
    return before?.loop === here?.loop && before && here ? here.round - before.round : null;
  });
  const known = distances.filter((distance) => distance !== null).sort((a, b) => a - b);
  if (known[Math.floor(known.length / 2)] !== 1) return new Set();
  return new Set(measured.slice(1).filter((_, i) => (distances[i] ?? 0) > 1));
}

function measuring(points: readonly TrackPoint[], metric: string): TrackPoint[] {
  return points.filter(({ metrics }) => isDrawable(metrics[metric]));
}

function isDrawable(value: number | undefined): value is number {
  return Number.isFinite(value) && Math.abs(value!) < SIZE_MAX;
}
