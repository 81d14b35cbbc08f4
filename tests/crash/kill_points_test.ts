import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import {
  canFire,
  drawKillPoints,
  drawPairs,
  type FaultEvent,
  faultOf,
  PHASES,
} from "./kill_points.ts";

/** A run of 400 events: the four places in turn, each counting its own, the phases in turn. */
const events: FaultEvent[] = Array.from({ length: 400 }, (_, i) => {
  const place = ["engine", "agent", "trainer", "sampler"][i % 4]!;
  const event = place === "engine" ? "append" : place === "agent" ? "frame" : "op";
  return {
    place,
    rank: 0,
    event,
    n: Math.floor(i / 4) + 1,
    phase: PHASES[Math.floor(i / 4) % 5]!,
  } as const;
});
const at = (place: string, n: number) => ({
  place,
  event: place === "engine" ? "append" : "op",
  n,
  phase: "other",
});

Deno.test("drawKillPoints() gives different events of the place only, and the same ones for the same seed", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 1000 }),
      fc.integer({ min: 1, max: 40 }),
      (seed, count) => {
        const points = drawKillPoints(events, { place: "engine", count, seed });
        strictEqual(points.length, count);
        strictEqual(new Set(points.map((point) => faultOf(point))).size, count);
        ok(points.every((point) => point.place === "engine"));
        deepStrictEqual(points, drawKillPoints(events, { place: "engine", count, seed }));
      },
    ),
  );
});

Deno.test("drawKillPoints() takes the phases in turn, so that a rare one is hit as often as it can be", () => {
  const rare = events.filter(({ phase, n }) => phase !== "checkpoint" || n === 4);
  const points = drawKillPoints(rare, { place: "engine", count: 13, seed: 3 });
  const perPhase = PHASES.map((phase) => points.filter((point) => point.phase === phase).length);
  deepStrictEqual(perPhase, [3, 3, 3, 1, 3]);
});

Deno.test("canFire() starts the count again in whatever died with the first fault", () => {
  ok(canFire(events, [at("trainer", 30), at("engine", 60)]));
  // 70 operations are left for the second process.
  ok(canFire(events, [at("trainer", 30), at("trainer", 60)]));
  ok(!canFire(events, [at("trainer", 60), at("trainer", 80)])); // Only 40 are.
  // Its workers may die with an engine.
  ok(!canFire(events, [at("engine", 20), at("trainer", 90)]));
  ok(!canFire(events, [at("trainer", 101)]));
});

Deno.test("drawPairs() gives pairs of two faults that can both fire, half of them close together", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1000 }), (seed) => {
      const pairs = drawPairs(events, { count: 16, seed });
      strictEqual(pairs.length, 16);
      ok(pairs.every((pair) => pair.length === 2 && canFire(events, pair)));
      ok(new Set(pairs.map((pair) => faultOf(...pair))).size > 12);
    }),
    { numRuns: 20 },
  );
});
