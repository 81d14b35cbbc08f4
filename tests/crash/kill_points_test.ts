import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { drawKillPoints, type FaultEvent, faultOf, PHASES } from "./kill_points.ts";

const events: FaultEvent[] = Array.from({ length: 200 }, (_, i) => ({
  place: i % 5 === 0 ? "trainer" : "engine",
  rank: 0,
  event: i % 2 === 0 ? "append" : "frame",
  n: i,
  phase: [...PHASES, "other"][i % 5]!,
}));

Deno.test("drawKillPoints() gives different events of the place only, and the same ones for the same seed", () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 1, max: 40 }), (seed, count) => {
    const points = drawKillPoints(events, { place: "engine", count, seed });
    strictEqual(points.length, count);
    strictEqual(new Set(points.map(faultOf)).size, count);
    ok(points.every((point) => point.place === "engine" && point.phase !== "other"));
    deepStrictEqual(points, drawKillPoints(events, { place: "engine", count, seed }));
  }));
});

Deno.test("drawKillPoints() takes the phases in turn, so that a rare one is hit as often as it can be", () => {
  const points = drawKillPoints(events, { place: "engine", count: 9, seed: 3 });
  const perPhase = PHASES.map((phase) => points.filter((point) => point.phase === phase).length);
  ok(perPhase.filter((n) => n >= 3).length === 3, JSON.stringify(perPhase));
});
