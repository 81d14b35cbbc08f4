/** Curves as a picture of lines and text, small enough for a page. */

type Series = { name: string; points: readonly { x: number; y: number }[] };
type Labels = { title: string; x: string; y: string };
/** `top`: where y ends. `means`: beside the points, a bold running mean of five. */
type Drawing = { top?: number; means?: boolean };

const WIDTH = 640;
const HEIGHT = 300;
const PLOT = { left: 56, right: 16, top: 34, bottom: 44 };
/** Distinguishable without red and green (Okabe and Ito, 2008). */
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];
/** Points on either side that a bold point averages. */
const HALF_WINDOW = 2;
const Y_TICKS = 5;
const X_TICKS = 6;

/** A line for each series; y begins at 0. */
export function curvesSvg(
  series: readonly Series[],
  labels: Labels,
  { top = 1, means = true }: Drawing = {},
): string {
  const last = Math.max(...series.flatMap(({ points }) => points.map(({ x }) => x)), 0);
  const step = niceStep(last / X_TICKS);
  const end = Math.max(step, Math.ceil(last / step) * step);
  const x = (value: number) => PLOT.left + (value / end) * (WIDTH - PLOT.left - PLOT.right);
  const rise = niceStep(top / Y_TICKS);
  const rises = Math.ceil(top / rise);
  const height = HEIGHT - PLOT.top - PLOT.bottom;
  const y = (value: number) => PLOT.top + (1 - value / (rises * rise)) * height;
  const line = (points: Series["points"], style: string) =>
    `<polyline fill="none" ${style} points="${
      points.map((p) => `${fixed(x(p.x))},${fixed(y(p.y))}`).join(" ")
    }"/>`;
  const xs = Array.from({ length: Math.round(end / step) + 1 }, (_, i) => i * step);
  const ys = Array.from({ length: rises + 1 }, (_, i) => i * rise);
  const decimals = Math.max(1, Math.ceil(-Math.log10(rise)));
  const drawn = series.flatMap(({ name, points }, i) => {
    const colour = COLOURS[i % COLOURS.length]!;
    return [
      ...(means ? [line(points, `stroke="${colour}" stroke-opacity="0.3" stroke-width="1"`)] : []),
      line(means ? smoothed(points) : points, `stroke="${colour}" stroke-width="2"`),
      text(name, {
        at: [WIDTH - PLOT.right, HEIGHT - PLOT.bottom - 10 - 16 * i],
        anchor: "end",
        fill: colour,
      }),
    ];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" ` +
    `font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    ...ys.flatMap((value) => [
      `<line x1="${PLOT.left}" x2="${WIDTH - PLOT.right}" y1="${fixed(y(value))}" y2="${
        fixed(y(value))
      }" stroke="#dddddd"/>`,
      text(value.toFixed(decimals), { at: [PLOT.left - 8, y(value) + 4], anchor: "end" }),
    ]),
    ...xs.map((value) =>
      text(String(Number(value.toPrecision(6))), {
        at: [x(value), HEIGHT - PLOT.bottom + 18],
        anchor: "middle",
      })
    ),
    text(labels.title, { at: [PLOT.left, 20], size: 14 }),
    text(labels.x, { at: [(PLOT.left + WIDTH - PLOT.right) / 2, HEIGHT - 8], anchor: "middle" }),
    text(labels.y, { at: [WIDTH - PLOT.right, 20], anchor: "end" }),
    ...drawn,
    "</svg>",
    "",
  ].join("\n");
}

type Text = { at: [number, number]; anchor?: string; fill?: string; size?: number };

function text(
  content: string,
  { at: [x, y], anchor = "start", fill = "#333333", size = 12 }: Text,
): string {
  const safe = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${fixed(x)}" y="${
    fixed(y)
  }" text-anchor="${anchor}" fill="${fill}" font-size="${size}">${safe}</text>`;
}

/** The mean of each point and its neighbours; fewer at the ends. */
export function smoothed(points: Series["points"]): { x: number; y: number }[] {
  return points.map(({ x }, i) => {
    const near = points.slice(Math.max(0, i - HALF_WINDOW), i + HALF_WINDOW + 1);
    return { x, y: near.reduce((sum, { y }) => sum + y, 0) / near.length };
  });
}

/** The smallest of 1, 2, 5, 10, 20, ... that is not below `least`. */
export function niceStep(least: number): number {
  if (!(least > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least)!;
}

function fixed(value: number): string {
  return value.toFixed(1);
}
