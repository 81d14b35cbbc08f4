import { match, strictEqual } from "node:assert/strict";
import { type MetricPlot, plotAxes, plotSvg } from "../../../runs/plots/metric_plot.ts";

const PLOT: MetricPlot = {
  metric: "policy/kl",
  by: "round",
  curves: [
    { run: "a", points: [{ x: 1, y: -0.5 }, { x: 2, y: 0.25 }, { x: 3, y: 0.25 }] },
    { run: "b", points: [{ x: 2, y: 1.5 }] },
  ],
};

Deno.test("plotAxes() enclose the points of all runs, and rounds are whole numbers", () => {
  const { x, y } = plotAxes(PLOT, { x: 6, y: 4 });
  strictEqual(x.ticks.map(({ text }) => text).join(" "), "1 2 3");
  strictEqual(y.ticks.map(({ text }) => text).join(" "), "-0.5 0.0 0.5 1.0 1.5");
});

Deno.test("plotAxes() take more points than a call takes arguments", () => {
  const points = Array.from({ length: 300_000 }, (_, x) => ({ x, y: x % 7 }));
  const { x, y } = plotAxes({ ...PLOT, curves: [{ run: "a", points }] }, { x: 3, y: 3 });
  strictEqual(`${x.from} ${x.to} ${y.from} ${y.to}`, "0 300000 0 6");
});

Deno.test("plotSvg() names metric, x and runs, and keeps the values beside the means", () => {
  const svg = plotSvg(PLOT);
  for (const text of ["policy/kl", "round", "● a", "● b"]) match(svg, RegExp(`>${text}</text>`));
  strictEqual(svg.match(/<polyline/g)!.length, 1);
  strictEqual(plotSvg(PLOT, { smooth: 2 }).match(/<polyline/g)!.length, 2);
});
