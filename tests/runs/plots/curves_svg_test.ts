import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { axisOf } from "../../../runs/plots/axis.ts";
import { curvesSvg, smoothed } from "../../../runs/plots/curves_svg.ts";

const LABELS = { title: "t", x: "seconds", y: "reward" };

/** Where each line of a picture leads. */
function lines(svg: string): number[][][] {
  return [...svg.matchAll(/points="([^"]+)"/g)].map(([, list]) =>
    list!.split(" ").map((place) => place.split(",").map(Number))
  );
}

Deno.test("curvesSvg() draws each series, plain and smoothed, inside the plot, labelled", () => {
  const series = [
    { name: "a < ]]> b", points: [{ x: 0, y: 0 }, { x: 10, y: 1 }, { x: 20, y: 0 }] },
    { name: "c", points: [{ x: 0, y: 0.5 }, { x: 40, y: 0.5 }] },
  ];
  const svg = curvesSvg(series, LABELS);
  strictEqual(svg.match(/<polyline/g)!.length, 4);
  match(svg, /<text [^>]*>a &lt; ]]&gt; b<\/text>/);
  match(svg, />40<\/text>/);
  const points = lines(svg).flat();
  ok(
    points.every(([x, y]) => x! >= 56 && x! <= 624 && y! >= 34 && y! <= 256),
    JSON.stringify(points),
  );
  deepStrictEqual(smoothed(series[0]!.points, 5).map(({ y }) => y), [1 / 3, 1 / 3, 1 / 3]);
});

Deno.test("a picture of few points has its own height, and no means", () => {
  const series = [{ name: "a", points: [{ x: 0, y: 0.02 }, { x: 10, y: 0.06 }] }];
  const y = axisOf({ least: 0, most: 0.07 }, { steps: 5 });
  const svg = curvesSvg(series, LABELS, { y, window: 1 });
  strictEqual(svg.match(/<polyline/g)!.length, 1);
  for (const tick of ["0.00", "0.02", "0.08"]) match(svg, new RegExp(`>${tick}</text>`));
  strictEqual(lines(svg)[0]![1]![1], 34 + (1 - 0.06 / 0.08) * 222);
});

Deno.test("an axis may begin below zero: its least value is at the bottom", () => {
  const series = [{ name: "a", points: [{ x: 100, y: -2 }, { x: 200, y: 2 }] }];
  const axes = {
    x: axisOf({ least: 100, most: 200 }, { steps: 5 }),
    y: axisOf({ least: -2, most: 2 }, { steps: 4 }),
  };
  const svg = curvesSvg(series, LABELS, { ...axes, window: 1 });
  deepStrictEqual(lines(svg), [[[56, 256], [624, 34]]]);
  match(svg, />-2<\/text>/);
});

Deno.test("long ticks get the room that they need", () => {
  const series = [{ name: "a", points: [{ x: 0, y: -123456 }, { x: 250_000, y: 0 }] }];
  const axes = {
    x: axisOf({ least: 0, most: 250_000 }, { steps: 5 }),
    y: axisOf({ least: -200_000, most: 0 }, { steps: 4 }),
  };
  const [[first, last]] = lines(curvesSvg(series, LABELS, { ...axes, window: 1 })) as [number[][]];
  deepStrictEqual([first![0], last![0]], [7 * 8 + 10, 640 - (6 * 8) / 2]);
});

Deno.test("a gap breaks the line, and a point alone is a dot of the curve's colour", () => {
  const points = [{ x: 1, y: 0 }, { x: 2, y: 1 }, { x: 4, y: 0, gap: true as const }];
  const svg = curvesSvg([{ name: "a", points }], LABELS, { window: 1 });
  deepStrictEqual(lines(svg).map((line) => line.length), [2]);
  strictEqual(svg.match(/<circle [^>]*fill="#0072b2"/g)!.length, 1);
});

Deno.test("a legend below has a line for each name; what XML cannot hold is replaced", () => {
  const names = ["b\u0001\ud800&", `${"x".repeat(99)}end`];
  const series = names.map((name) => ({ name, points: [{ x: 1, y: 0 }] }));
  const svg = curvesSvg(series, LABELS, { legend: "below" });
  match(svg, /viewBox="0 0 640 332"/);
  match(svg, />● b\ufffd\ufffd&amp;<\/text>/);
  match(svg, />● x+…x+end<\/text>/);
});

Deno.test("smoothed() takes as many points as it is asked for, and leaves x and gaps", () => {
  const points = [0, 6, 0, 6].map((y, x) => ({ x, y, ...(x === 2 && { gap: true as const }) }));
  deepStrictEqual(smoothed(points, 1), points);
  deepStrictEqual(smoothed(points, 2).map(({ y }) => y), [3, 3, 3, 6]);
  deepStrictEqual(smoothed(points, 3)[2], { x: 2, y: 4, gap: true });
});
