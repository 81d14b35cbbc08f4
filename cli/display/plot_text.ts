import pc from "picocolors";
import { type Axis, type MetricPlot, plotAxes, share, smoothed, X_LABELS } from "../../runs/mod.ts";
import { Dots } from "./dots.ts";
import type { Canvas } from "./output.ts";
import { visible } from "./visible.ts";

const ROWS = 16;
const Y_STEPS = 4;
/** Columns for each tick of x. */
const X_TICK_COLUMNS = 12;
/** Narrower, a plot shows nothing. */
const COLUMNS_MIN = 16;

const PAINTS = ["cyan", "yellow", "green", "magenta", "blue", "red", "white", "gray"] as const;

type Curve = MetricPlot["curves"][number];
type Frame = { axes: { x: Axis; y: Axis }; columns: number; paints: Paint[] };
type Paint = (text: string) => string;

/**
 * Lines that show a plot. Runs lie over each other in their colours; without colours they are
 * beneath each other, with the same axes.
 */
export function plotText(
  plot: MetricPlot,
  { columns, color, smooth = 1 }: Canvas & { smooth?: number },
): string {
  const { metric, by } = plot;
  const curves = plot.curves.map(({ run, points }) => ({ run, points: smoothed(points, smooth) }));
  const ticks = { x: Math.max(1, Math.floor(columns / X_TICK_COLUMNS)), y: Y_STEPS };
  const axes = plotAxes({ ...plot, curves }, ticks);
  const colors = pc.createColors(color);
  const paints = PAINTS.map((name): Paint => (text) => colors[name](text));
  const frame = { axes, columns, paints };
  const title = (run: string) => visible(`${metric} of ${run}, by ${X_LABELS[by]}`);
  if (curves.length === 1 || !color) {
    return curves.map((one) => [title(one.run), ...drawn([one], frame)].join("\n")).join("\n\n");
  }
  const legend = curves.map(({ run }, i) => paints[i % paints.length]!(`● ${visible(run)}`));
  return [visible(`${metric}, by ${X_LABELS[by]}`), ...drawn(curves, frame), ...legend].join("\n");
}

function drawn(curves: readonly Curve[], { axes: { x, y }, columns, paints }: Frame): string[] {
  const margin = Math.max(...y.ticks.map(({ text }) => text.length));
  const width = Math.max(COLUMNS_MIN, columns - margin - 2);
  const dots = new Dots({ columns: width, rows: ROWS });
  for (const [owner, { points }] of curves.entries()) {
    const places = points.map((one) => ({ x: share(one.x, x), y: 1 - share(one.y, y) }));
    for (const [i, place] of places.entries()) {
      dots.line(points[i]!.gap ? place : places[i - 1] ?? place, place, owner);
    }
  }
  const rows = dots.rows((text, owner) => paints[owner % paints.length]!(text));
  const labels = new Map(
    y.ticks.map(({ value, text }) => [Math.round((1 - share(value, y)) * (ROWS - 1)), text]),
  );
  return [
    ...rows.map((row, i) => {
      const label = labels.get(i);
      return `${(label ?? "").padStart(margin)} ${label === undefined ? "│" : "┤"}${row}`.trimEnd();
    }),
    ...xLines(x, width).map((line, i) => `${" ".repeat(margin)} ${i === 0 ? "└" : " "}${line}`),
  ];
}

/** The axis, and below it the ticks that have room. */
function xLines(x: Axis, width: number): string[] {
  let [axis, labels] = ["", ""];
  for (const { value, text } of x.ticks) {
    const column = Math.round(share(value, x) * (width - 1));
    const start = Math.min(Math.max(0, column - Math.floor(text.length / 2)), width - text.length);
    if (start < labels.length + 1 && labels !== "") continue;
    axis = `${axis.padEnd(column, "─")}┬`;
    labels = `${labels.padEnd(start)}${text}`;
  }
  return [axis.padEnd(width, "─"), labels];
}
