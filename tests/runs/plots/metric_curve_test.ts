import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { metricCurve, whyNotBy } from "../../../runs/plots/metric_curve.ts";
import type { TrackPoint } from "../../../runs/mod.ts";

const HOUR_MS = 3_600_000;

/** A point for each entry, an hour apart: the round of a loop, or null outside. */
function pointsOf(
  entries: readonly [round: number | null, metrics: Record<string, number>, loop?: string][],
): TrackPoint[] {
  return entries.map(([round, metrics, loop = "round"], i) => ({
    number: i + 1,
    step: 10 + i,
    round: round === null ? null : { loop, round },
    at_ms: 5 + i * HOUR_MS,
    metrics,
  }));
}

const LEARNT = pointsOf([
  [null, { m: 0 }],
  [1, { m: 1, "perf/trained_tokens": 7 }],
  [2, { other: 1, "perf/trained_tokens": 8 }],
  [3, { m: 3 }],
  [null, { m: 4 }],
]);

Deno.test("metricCurve() is at rounds, steps, hours or tokens; outside the loop, at the round before", () => {
  const xs = (by: "round" | "step" | "hours" | "tokens") =>
    metricCurve(LEARNT, { metric: "m", by }).map(({ x, y }) => [x, y]);
  deepStrictEqual(xs("round"), [[0, 0], [1, 1], [3, 3], [3, 4]]);
  deepStrictEqual(xs("step"), [[10, 0], [11, 1], [13, 3], [14, 4]]);
  deepStrictEqual(xs("hours"), [[0, 0], [1, 1], [3, 3], [4, 4]]);
  deepStrictEqual(xs("tokens"), [[0, 0], [7, 1], [15, 3], [15, 4]]);
});

Deno.test("metricCurve() has a gap where a metric of every round lacks rounds", () => {
  const curve = (rounds: number[]) =>
    metricCurve(pointsOf(rounds.map((round) => [round, { m: 0 }])), { metric: "m", by: "round" })
      .filter(({ gap }) => gap).map(({ x }) => x);
  deepStrictEqual(curve([1, 2, 3, 6, 7, 9]), [6, 9]);
  deepStrictEqual(curve([5, 10, 15, 30, 31]), []);
});

Deno.test("metricCurve() leaves out what is no number, and breaks its line there", () => {
  const damaged = [NaN, Infinity, 1e305, null as unknown as number, "3" as unknown as number];
  const points = pointsOf([1, 2, 3, ...damaged, 9].map((m, i) => [i + 1, { m }]));
  deepStrictEqual(metricCurve(points, { metric: "m", by: "round" }), [
    { x: 1, y: 1 },
    { x: 2, y: 2 },
    { x: 3, y: 3 },
    { x: 9, y: 9, gap: true },
  ]);
});

Deno.test("whyNotBy() names what a metric lacks: rounds of one loop, or tokens", () => {
  const why = (points: TrackPoint[], by: "round" | "tokens") =>
    whyNotBy(by, { points, metric: "m" });
  strictEqual(why(LEARNT, "round"), null);
  strictEqual(why(LEARNT, "tokens"), null);
  match(why(pointsOf([[null, { m: 1 }]]), "round")!, /measured in no round/);
  const loops = pointsOf([[1, { m: 1 }, "warmup"], [1, { m: 1 }]]);
  match(why(loops, "round")!, /loops warmup and round/);
  match(why(loops, "tokens")!, /no perf\/trained_tokens/);
});
