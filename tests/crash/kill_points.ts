import { hashJson } from "../../engine/mod.ts";

/** One line of the list of events that an undisturbed run writes. */
export type FaultEvent = { place: string; rank: number; event: "append" | "frame" | "op"; n: number; phase: string };
export type KillPoint = { place: string; event: string; n: number; phase: string };

export const PHASES = ["generation", "publication", "training", "checkpoint"] as const;

/** A number in [0, 1) from a seed and a label: no state, so that a list of points does not depend on its order. */
function draw(seed: number, label: string): number {
  return parseInt(hashJson([seed, label]).slice(0, 12), 16) / 2 ** 48;
}

/**
 * `count` different kill points of one place, stratified by phase: the phases take turns, and within a phase the seed
 * picks among the events that the undisturbed run went through. Phases that the place never enters are passed over.
 */
export function drawKillPoints(
  events: FaultEvent[],
  options: { place: string; count: number; seed: number },
): KillPoint[] {
  const { place, count, seed } = options;
  const mine = events.filter((event) => event.place === place);
  const queues = PHASES.map((phase) =>
    mine.filter((event) => event.phase === phase)
      .map((event) => ({ event, order: draw(seed, `${place}/${event.event}/${event.n}`) }))
      .toSorted((a, b) => a.order - b.order)
      .map(({ event }) => event)
  );
  const points: KillPoint[] = [];
  while (points.length < count && queues.some((queue) => queue.length > 0)) {
    for (const queue of queues) {
      const event = queue.shift();
      if (event && points.length < count) points.push({ place, event: event.event, n: event.n, phase: event.phase });
    }
  }
  return points;
}

/** The value of HOLDFAST_FAULT that makes this point happen. */
export function faultOf(point: KillPoint): string {
  return `kill:${point.place}@${point.event}:${point.n}`;
}
