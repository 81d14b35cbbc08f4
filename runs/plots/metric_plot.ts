import { type Axis, axisOf } from "./axis.ts";
import { curvesSvg } from "./curves_svg.ts";
import { type CurvePoint, type CurveX, X_LABELS } from "./metric_curve.ts";

/** A metric of one or several runs. */
export type MetricPlot = {
  metric: string;
  by: CurveX;
  curves: readonly { run: string; points: readonly CurvePoint[] }[];
};

/** Both axes of a plot with about so many ticks. */
export function plotAxes(
  { by, curves }: MetricPlot,
  steps: { x: number; y: number },
): { x: Axis; y: Axis } {
  const points = curves.flatMap((curve) => curve.points);
  return {
    x: axisOf(ends(points.map(({ x }) => x)), {
      steps: steps.x,
      step_min: by === "hours" ? 0 : 1,
    }),
    y: axisOf(ends(points.map(({ y }) => y)), { steps: steps.y }),
  };
}

/** The plot as a picture. `smooth`: points that a running mean takes; the values stay, paler. */
export function plotSvg(plot: MetricPlot, { smooth = 1 }: { smooth?: number } = {}): string {
  const { metric, by, curves } = plot;
  const series = curves.map(({ run, points }) => ({ name: run, points }));
  return curvesSvg(series, { title: metric, x: X_LABELS[by], y: "" }, {
    ...plotAxes(plot, { x: 6, y: 5 }),
    window: smooth,
    legend: "below",
  });
}

/** Without spreading them: a run may have more values than a call has arguments. */
function ends(values: readonly number[]): { least: number; most: number } {
  return {
    least: values.reduce((least, value) => Math.min(least, value), Infinity),
    most: values.reduce((most, value) => Math.max(most, value), -Infinity),
  };
}
