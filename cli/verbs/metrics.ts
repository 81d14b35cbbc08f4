import { type Home, newestRun, type TrackPoint } from "../../runs/mod.ts";
import { print, printJson, table } from "../display/output.ts";
import { chosenMetrics, measuredRun } from "../measured_run.ts";
import { defineVerb } from "../verb.ts";
import { ARGUMENTS } from "../arguments.ts";
import { flag, json, whole } from "../options.ts";

/** `metrics [RUN] [NAMES...]`: the run's metrics, or a line for each round with values of some. */
export const metricsVerb = defineVerb({
  name: "metrics",
  about: "list metrics, or their values by round",
  arguments: { "[run]": ARGUMENTS.run, "[names...]": "metrics to show; * stands for any text" },
  options: {
    json,
    csv: flag("print comma-separated values, unrounded"),
    last: whole("<n>", "only the last lines"),
  },
  action: ({ args, flags, globals }) =>
    globals.withHome((home) => showMetrics(home, { ...args, ...flags })),
});

type MetricsOptions = {
  run?: string;
  names?: string[];
  json?: boolean;
  csv?: boolean;
  last?: number;
};

async function showMetrics(home: Home, { run, names = [], ...how }: MetricsOptions): Promise<void> {
  const measured = await measuredRun(home, { run: run ?? await newestRun(home), verb: "metrics" });
  const { id, points, known } = measured;
  const wanted = names.length === 0 ? known : chosenMetrics(names, measured);
  const shown = points.map((point) => ({ ...point, metrics: picked(point.metrics, wanted) }))
    .filter(({ metrics }) => Object.keys(metrics).length > 0).slice(-(how.last ?? Infinity));
  if (how.json) printJson({ run: id, points: shown.map(placed) });
  else if (how.csv) print(csv(shown, wanted));
  else if (names.length === 0) print(overview(shown, known));
  else print(values(shown, wanted));
}

function picked(metrics: Record<string, number>, names: readonly string[]): Record<string, number> {
  return Object.fromEntries(
    names.filter((name) => name in metrics).map((name) => [name, metrics[name]!]),
  );
}

function placed({ step, round, at_ms, metrics }: TrackPoint): Record<string, unknown> {
  return { step, loop: round?.loop ?? null, round: round?.round ?? null, at_ms, metrics };
}

/** A line for each metric: how many values it has, the first, the last and both extremes. */
function overview(points: readonly TrackPoint[], names: readonly string[]): string {
  if (points.length === 0) return "no metric yet";
  const lines = names.flatMap((name) => {
    const all = points.flatMap(({ metrics }) => metrics[name] ?? []);
    const sorted = all.toSorted((a, b) => a - b);
    const ends = [all[0], all.at(-1), sorted[0], sorted.at(-1)].map(short);
    return all.length === 0 ? [] : [[name, String(all.length), ...ends]];
  });
  return table(["metric", "values", "first", "last", "lowest", "highest"], lines);
}

function values(points: readonly TrackPoint[], names: readonly string[]): string {
  const line = ({ step, round, metrics }: TrackPoint) => [
    String(step),
    round === null ? "-" : `${round.loop} ${round.round}`,
    ...names.map((name) => short(metrics[name])),
  ];
  return table(["step", "round", ...names], points.map(line));
}

/** By RFC 4180; a metric that a line lacks is an empty field. */
function csv(points: readonly TrackPoint[], names: readonly string[]): string {
  const field = (text: string) => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const line = ({ step, round, at_ms, metrics }: TrackPoint) =>
    [step, round?.loop, round?.round, at_ms, ...names.map((name) => metrics[name])]
      .map((value) => value === undefined ? "" : field(String(value)));
  const head = ["step", "loop", "round", "at_ms", ...names].map(field);
  return [head, ...points.map(line)].map((fields) => fields.join(",")).join("\n");
}

function short(value: number | undefined): string {
  return value === undefined ? "-" : String(Number(value.toPrecision(5)));
}
