/** What a run measured, for verbs that show metrics. */
import { didYouMean } from "../configs/mod.ts";
import { InvalidInputError } from "../engine/mod.ts";
import { findRun, type Home, type TrackPoint, TrackPoints } from "../runs/mod.ts";

/** `known`: the names of its metrics, sorted. */
export type MeasuredRun = { id: string; points: TrackPoint[]; known: string[] };

/** Reads a run. `verb`: for people who name a metric where the run belongs. */
export async function measuredRun(
  home: Home,
  { run, verb }: { run: string; verb: string },
): Promise<MeasuredRun> {
  if (/[/*]/.test(run)) {
    throw new InvalidInputError(
      `Cannot show '${run}' because the run comes first: ${verb} RUN ${run}`,
      { run },
    );
  }
  const head = await findRun(home, run);
  const points = (await Array.fromAsync(new TrackPoints(home, head).next())).flat();
  const known = [...new Set(points.flatMap(({ metrics }) => Object.keys(metrics)))].sort();
  return { id: head.id, points, known };
}

/** The run's metrics that the patterns stand for, in the order of the patterns. */
export function chosenMetrics(
  patterns: readonly string[],
  { id, known }: Omit<MeasuredRun, "points">,
): string[] {
  const found = patterns.flatMap((pattern) => {
    if (known.includes(pattern)) return [pattern];
    const parts = pattern.split(/\*+/).map((part) => RegExp.escape(part));
    const matching = known.filter((name) => new RegExp(`^${parts.join(".*")}$`, "s").test(name));
    if (matching.length > 0) return matching;
    const why = known.length === 0
      ? "has no metric yet: it measures its first in its first round"
      : `has no such metric${didYouMean(pattern, known)}: 'metrics ${id}' lists what it has`;
    throw new InvalidInputError(`Cannot show '${pattern}' because run '${id}' ${why}`, {
      pattern,
      run: id,
    });
  });
  return [...new Set(found)];
}
