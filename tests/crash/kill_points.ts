import { hashJson } from "../../engine/mod.ts";

/** One line of the list of events that an undisturbed run writes, in the order of time. */
export type FaultEvent = { place: string; rank: number; event: string; n: number; phase: string };
export type KillPoint = {
  kind?: "kill" | "stop";
  place: string;
  event: string;
  n: number;
  phase: string;
};

/** `other` is what no phase claims: the start, the data, scoring, the evaluation. */
export const PHASES = ["generation", "publication", "training", "checkpoint", "other"] as const;

/**
 * The places of two faults in one run, first and second. An odd number, so that each pair comes
 * near and far in turn.
 */
const PAIRS = [
  ["engine", "trainer"],
  ["trainer", "engine"],
  ["agent", "trainer"],
  ["engine", "agent"],
  ["agent", "engine"],
  ["trainer", "sampler"],
  ["sampler", "engine"],
  ["trainer", "trainer"],
  ["engine", "sampler"],
  ["engine", "engine"],
  ["agent", "sampler"],
] as const;
/** A second fault within so many events of the first meets its recovery. */
const NEAR_EVENTS = 20;

/**
 * A number in [0, 1) from a seed and a label: no state, so that a list of points does not depend on
 * its order.
 */
function draw(seed: number, label: string): number {
  return parseInt(hashJson([seed, label]).slice(0, 12), 16) / 2 ** 48;
}

/** In an order that the seed decides. */
function shuffled(events: FaultEvent[], options: { seed: number; label: string }): FaultEvent[] {
  const order = (event: FaultEvent) =>
    draw(options.seed, `${options.label}/${event.event}/${event.n}`);
  return events.map((event) => ({ event, order: order(event) })).toSorted((a, b) =>
    a.order - b.order
  )
    .map(({ event }) => event);
}

function pointOf({ place, event, n, phase }: FaultEvent): KillPoint {
  return { place, event, n, phase };
}

/**
 * `count` different kill points of one place, stratified by phase: the phases take turns, and
 * within a phase the seed picks among the events that the undisturbed run went through. Phases that
 * the place never enters are passed over.
 */
export function drawKillPoints(
  events: FaultEvent[],
  options: { place: string; count: number; seed: number },
): KillPoint[] {
  const { place, count, seed } = options;
  const mine = events.filter((event) => event.place === place);
  const queues = PHASES.map((phase) =>
    shuffled(mine.filter((event) => event.phase === phase), { seed, label: place })
  );
  const points: KillPoint[] = [];
  while (points.length < count && queues.some((queue) => queue.length > 0)) {
    for (const queue of queues) {
      const event = queue.shift();
      if (event && points.length < count) points.push(pointOf(event));
    }
  }
  return points;
}

/**
 * `count` pairs of faults in one run, their places in turn. Every second pair is near: the second
 * fault comes while the first is being recovered from. Only pairs of which both can fire, whatever
 * the first takes with it.
 */
export function drawPairs(
  events: FaultEvent[],
  options: { count: number; seed: number },
): KillPoint[][] {
  const { count, seed } = options;
  return Array.from({ length: count }, (_, i) => {
    const [place, second] = PAIRS[i % PAIRS.length]!;
    const firsts = drawKillPoints(events, { place, count: events.length, seed: seed + i });
    for (const first of firsts) {
      const at = events.findIndex((event) => isAt(event, first));
      const near = events.slice(at + 1, at + 1 + NEAR_EVENTS);
      const label = `second/${i}`;
      const wide = shuffled(events, { seed, label });
      const seconds = (i % 2 === 0 ? [...shuffled(near, { seed, label }), ...wide] : wide)
        .filter((event) => event.place === second && !isAt(event, first));
      const found = seconds.map((event) => [first, pointOf(event)]).find((pair) =>
        canFire(events, pair)
      );
      if (found) return found;
    }
    throw new RangeError(
      `Cannot draw a pair of ${place} and ${second} because the undisturbed run is too short`,
    );
  });
}

function isAt(event: FaultEvent, point: KillPoint): boolean {
  return event.place === point.place && event.event === point.event && event.n === point.n;
}

/** Whose counts begin anew when a place dies; `engine` with and without workers that outlive it. */
const DIE_WITH: Record<string, readonly string[]>[] = ["engine", "engine agent trainer sampler"]
  .map((engine) => ({
    engine: engine.split(" "),
    agent: ["agent", "trainer", "sampler"],
    trainer: ["trainer"],
    sampler: ["sampler"],
  }));

/**
 * Whether all points are reached although counting starts again in every process that comes back.
 * On the safe side: what recovery adds to the undisturbed run's events is left out.
 */
export function canFire(events: FaultEvent[], points: KillPoint[]): boolean {
  return DIE_WITH.every((dieWith) => {
    const counts = new Map<string, number>();
    const waiting = new Set(points);
    for (const { place, event } of events) {
      const n = (counts.get(`${place}/${event}`) ?? 0) + 1;
      counts.set(`${place}/${event}`, n);
      const fired = [...waiting].find((point) =>
        point.place === place && point.event === event && point.n === n
      );
      if (!fired) continue;
      waiting.delete(fired);
      const dead = dieWith[place]!;
      for (const key of counts.keys()) if (dead.includes(key.split("/")[0]!)) counts.delete(key);
    }
    return waiting.size === 0;
  });
}

/** The value of HOLDFAST_FAULT that makes these points happen. */
export function faultOf(...points: KillPoint[]): string {
  return points.map(({ kind = "kill", place, event, n }) => `${kind}:${place}@${event}:${n}`).join(
    ",",
  );
}
