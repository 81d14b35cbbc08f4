import { ok, strictEqual } from "node:assert/strict";
import { COLOURS } from "../../../runs/plots/curves_svg.ts";
import { plotSvg } from "../../../runs/plots/metric_plot.ts";
import { picturePng } from "../../../runs/plots/picture_png.ts";
import { decodedPng, pixelsOf } from "./decoded_png.ts";

Deno.test("picturePng() draws the curve of each run in its colour, and text without fonts of the machine", async () => {
  const curves = [0.25, 0.75].map((y, i) => ({
    run: `run_${i}`,
    points: [{ x: 0, y }, { x: 10, y }],
  }));
  const png = decodedPng(await picturePng(plotSvg({ metric: "reward/mean", by: "round", curves })));
  strictEqual(`${png.width} ${png.height}`, "1280 664");
  // At twice the size of the SVG: the plot ends at 256, below 300 is the legend, above 26 the title.
  const [plot, legend, title] = [[68, 512], [576, 664], [0, 52]].map(([from, to]) => ({
    from: from!,
    to: to!,
  }));
  for (const colour of COLOURS.slice(0, 2)) {
    ok(pixelsOf(png, colour, plot!) > 1000, colour);
    ok(pixelsOf(png, colour, legend!) > 100, colour);
  }
  strictEqual(pixelsOf(png, COLOURS[2]!, { from: 0, to: png.height }), 0);
  ok(pixelsOf(png, "#333333", title!) > 100);
});
