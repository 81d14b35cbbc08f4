/** Curves as a picture of lines and text, small enough for a page. */
import { type Axis, axisOf, share } from "./axis.ts";

/** `gap`: no line leads from the previous point to here. */
type Point = { x: number; y: number; gap?: true };
type Series = { name: string; points: readonly Point[] };
type Labels = { title: string; x: string; y: string };
/**
 * `window`: how many points a bold running mean takes, beside the paler points; 1: none. `legend`:
 * where the names of the series are.
 */
type Drawing = { x?: Axis; y?: Axis; window?: number; legend?: "inside" | "below" };

const WIDTH = 640;
const HEIGHT = 300;
const PLOT = { left: 56, right: 16, top: 34, bottom: 44 };
/** Distinguishable without red and green (Okabe and Ito, 2008), and two greys. */
export const COLOURS = [
  "#0072b2",
  "#e69f00",
  "#009e73",
  "#cc79a7",
  "#56b4e9",
  "#d55e00",
  "#000000",
  "#999999",
];
const Y_STEPS = 5;
const X_STEPS = 6;
/** Of a line of the legend. */
const LINE_HEIGHT = 16;
/** Of a character of a tick, at most. */
const CHARACTER_WIDTH = 8;
/** Of a name in the legend: as many as fit. */
const NAME_MAX = 76;

/** A line for each series; x begins at 0, and y goes from 0 to 1, unless their axes say otherwise. */
export function curvesSvg(
  series: readonly Series[],
  labels: Labels,
  { x = axisFromZero(series), y = unitAxis(), window = 5, legend = "inside" }: Drawing = {},
): string {
  const below = legend === "below" ? series.length * LINE_HEIGHT : 0;
  const left = Math.max(PLOT.left, widest(y) + 10);
  const right = WIDTH - Math.max(PLOT.right, widest(x) / 2);
  const height = HEIGHT - PLOT.top - PLOT.bottom;
  const across = (value: number) => left + share(value, x) * (right - left);
  const up = (value: number) => PLOT.top + (1 - share(value, y)) * height;
  const place = (point: Point) => ({ ...point, x: across(point.x), y: up(point.y) });
  const drawn = series.flatMap(({ name, points }, i) => {
    const colour = COLOURS[i % COLOURS.length]!;
    const bold = window > 1 ? smoothed(points, window) : points;
    return [
      ...(window > 1 ? strokes(points.map(place), { colour, width: 1, opacity: 0.3 }) : []),
      ...strokes(bold.map(place), { colour, width: 2 }),
      legend === "inside"
        ? text(name, {
          at: [right, HEIGHT - PLOT.bottom - 10 - LINE_HEIGHT * i],
          anchor: "end",
          fill: colour,
        })
        : text(`● ${shortened(name)}`, {
          at: [left, HEIGHT + LINE_HEIGHT * i + 4],
          fill: colour,
        }),
    ];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT + below}" ` +
    `font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT + below}" fill="#ffffff"/>`,
    ...y.ticks.flatMap((tick) => [
      `<line x1="${left}" x2="${right}" y1="${fixed(up(tick.value))}" y2="${
        fixed(up(tick.value))
      }" stroke="#dddddd"/>`,
      text(tick.text, { at: [left - 8, up(tick.value) + 4], anchor: "end" }),
    ]),
    ...x.ticks.map((tick) =>
      text(tick.text, { at: [across(tick.value), HEIGHT - PLOT.bottom + 18], anchor: "middle" })
    ),
    text(labels.title, { at: [left, 20], size: 14 }),
    text(labels.x, { at: [(left + right) / 2, HEIGHT - 8], anchor: "middle" }),
    text(labels.y, { at: [right, 20], anchor: "end" }),
    ...drawn,
    "</svg>",
    "",
  ].join("\n");
}

/** Room that the ticks of an axis need. */
function widest({ ticks }: Axis): number {
  return Math.max(...ticks.map(({ text }) => text.length)) * CHARACTER_WIDTH;
}

function axisFromZero(series: readonly Series[]): Axis {
  const last = Math.max(...series.flatMap(({ points }) => points.map(({ x }) => x)), 0);
  return axisOf({ least: 0, most: last || 1 }, { steps: X_STEPS });
}

function unitAxis(): Axis {
  return axisOf({ least: 0, most: 1 }, { steps: Y_STEPS });
}

type Stroke = { colour: string; width: number; opacity?: number };

/** A line for each unbroken part of a curve; a point alone is a dot. */
function strokes(points: readonly Point[], { colour, width, opacity }: Stroke): string[] {
  const parts: Point[][] = [];
  for (const point of points) {
    if (point.gap || parts.length === 0) parts.push([]);
    parts.at(-1)!.push(point);
  }
  const pale = (paint: string) => opacity === undefined ? "" : ` ${paint}-opacity="${opacity}"`;
  return parts.map((part) => {
    const [{ x, y }] = part as [Point];
    if (part.length === 1) {
      return `<circle cx="${fixed(x)}" cy="${fixed(y)}" r="${width + 1}" fill="${colour}"${
        pale("fill")
      }/>`;
    }
    const places = part.map((point) => `${fixed(point.x)},${fixed(point.y)}`).join(" ");
    return `<polyline fill="none" stroke="${colour}"${
      pale("stroke")
    } stroke-width="${width}" points="${places}"/>`;
  });
}

type Text = { at: [number, number]; anchor?: string; fill?: string; size?: number };

/** What XML cannot hold, such as half of a character. */
const NOT_XML = /[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;

function text(
  content: string,
  { at: [x, y], anchor = "start", fill = "#333333", size = 12 }: Text,
): string {
  const safe = content.replaceAll(NOT_XML, "\uFFFD").replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<text x="${fixed(x)}" y="${
    fixed(y)
  }" text-anchor="${anchor}" fill="${fill}" font-size="${size}">${safe}</text>`;
}

/** Both ends of a name that is too long for a line. */
function shortened(name: string): string {
  const half = NAME_MAX / 2;
  return name.length <= NAME_MAX ? name : `${name.slice(0, half)}…${name.slice(1 - half)}`;
}

/** The mean of each point and its neighbours, `window` in all; fewer at the ends. */
export function smoothed<P extends Point>(points: readonly P[], window: number): P[] {
  const before = Math.floor((window - 1) / 2);
  return points.map((point, i) => {
    const near = points.slice(Math.max(0, i - before), i - before + window);
    return { ...point, y: near.reduce((sum, { y }) => sum + y, 0) / near.length };
  });
}

function fixed(value: number): string {
  return value.toFixed(1);
}
