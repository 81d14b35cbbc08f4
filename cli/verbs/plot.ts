import { InvalidInputError } from "../../engine/mod.ts";
import {
  COLOURS,
  type CurveX,
  type Home,
  metricCurve,
  type MetricPlot,
  picturePng,
  plotSvg,
  smoothed,
  whyNotBy,
  X_LABELS,
} from "../../runs/mod.ts";
import { ARGUMENTS } from "../arguments.ts";
import { outputCanvas, printJson, printPainted, tell } from "../display/output.ts";
import { plotText } from "../display/plot_text.ts";
import { chosenMetrics, type MeasuredRun, measuredRun } from "../measured_run.ts";
import { choice, flag, json, text, whole } from "../options.ts";
import { PictureFile } from "../picture_file.ts";
import { defineVerb } from "../verb.ts";

/** `plot RUN METRIC [RUN...]`: a metric as curves, in the terminal or as a picture. */
export const plotVerb = defineVerb({
  name: "plot",
  about: "draw a metric of one or several runs, in the terminal or as a picture",
  arguments: {
    "<run>": ARGUMENTS.run,
    "<metric>": "what to draw; * stands for any text, and each metric is a plot",
    "[runs...]": "runs to draw over it",
  },
  options: {
    json,
    svg: text("<file>", "write the picture as SVG"),
    png: text("<file>", "write the picture as PNG"),
    force: flag("replace files that exist"),
    x: choice(
      Object.keys(X_LABELS) as CurveX[],
      "x by round, by trained tokens (the sum of perf/trained_tokens), by hours since the run's " +
        "first metric, or by step, the rounds closed over all loops (default: round, or step for " +
        "what is not measured in the rounds of one loop)",
    ),
    smooth: whole("<n>", "draw the mean of n values; a picture also has the values, paler"),
    last: whole("<n>", "only the last values of each run, and means of these"),
  },
  action: ({ args: { run, metric, runs }, flags, globals }) =>
    globals.withHome((home) => plotRuns(home, { runs: [run, ...runs], metric, ...flags })),
});

type PlotOptions = {
  runs: string[];
  metric: string;
  json?: boolean;
  svg?: string;
  png?: string;
  force?: boolean;
  x?: CurveX;
  smooth?: number;
  last?: number;
};

async function plotRuns(home: Home, options: PlotOptions): Promise<void> {
  const { smooth, force } = options;
  const svg = options.svg === undefined ? null : new PictureFile(options.svg, { force });
  const png = options.png === undefined ? null : new PictureFile(options.png, { force });
  if (svg && svg.path === png?.path) {
    throw new InvalidInputError(
      `Cannot write ${svg.path} as SVG and as PNG because it is one file: name two`,
    );
  }
  const plots = await readPlots(home, options);
  if (svg || png) {
    const picture = plotSvg(onlyOne(plots), { smooth });
    await svg?.write(picture);
    await png?.write(await picturePng(picture));
    for (const { path } of [svg, png].filter((file) => file !== null)) tell(`wrote ${path}`);
  }
  if (options.json) printJson({ plots: plots.map((plot) => drawnPoints(plot, smooth)) });
  else if (!svg && !png) {
    const canvas = outputCanvas();
    printPainted(plots.map((plot) => plotText(plot, { ...canvas, smooth })).join("\n\n"));
  }
}

/** A plot for each metric that the pattern stands for, with the runs that have it. */
async function readPlots(home: Home, options: PlotOptions): Promise<MetricPlot[]> {
  const ids = [...new Set(options.runs)];
  if (ids.length > COLOURS.length) {
    throw new InvalidInputError(
      `Cannot plot ${ids.length} runs because a plot has ${COLOURS.length} colours: name fewer runs`,
    );
  }
  const runs: MeasuredRun[] = [];
  for (const run of ids) runs.push(await measuredRun(home, { run, verb: "plot" }));
  const names = new Set(runs.flatMap((run) => chosenMetrics([options.metric], run)));
  return [...names].map((metric) => {
    const having = runs.filter(({ known }) => known.includes(metric));
    const by = xOf(having, { metric, asked: options.x });
    const curves = having.map(({ id, points }) => {
      const curve = metricCurve(points, { metric, by }).slice(-(options.last ?? Infinity));
      if (curve.length > 0) return { run: id, points: curve };
      throw new InvalidInputError(
        `Cannot plot '${metric}' because run '${id}' has no number of it: plot another metric`,
        { run: id, metric },
      );
    });
    return { metric, by, curves };
  });
}

/** The same x for all runs: what was asked for, or what they can have. */
function xOf(
  runs: readonly MeasuredRun[],
  { metric, asked }: { metric: string; asked: CurveX | undefined },
): CurveX {
  const by = asked ?? "round";
  for (const { id, points } of runs) {
    const why = whyNotBy(by, { points, metric });
    if (why !== null && asked === undefined) return "step";
    if (why === null) continue;
    throw new InvalidInputError(
      `Cannot plot '${metric}' of run '${id}' by ${by} because ${why}. Fix: --x step`,
      { run: id, metric, x: by },
    );
  }
  return by;
}

function onlyOne(plots: readonly MetricPlot[]): MetricPlot {
  if (plots.length === 1) return plots[0]!;
  const names = plots.map(({ metric }) => metric).join(", ");
  throw new InvalidInputError(
    `Cannot write a picture because it shows one metric, and the pattern stands for ${plots.length}: ` +
      `name one of ${names}`,
  );
}

/** For programs. `mean`: what --smooth draws. */
function drawnPoints({ metric, by, curves }: MetricPlot, smooth = 1): Record<string, unknown> {
  return {
    metric,
    x: by,
    runs: curves.map(({ run, points }) => {
      const means = smoothed(points, smooth);
      const withMean = points.map((point, i) => ({ ...point, mean: means[i]!.y }));
      return { run, points: smooth > 1 ? withMean : points };
    }),
  };
}
