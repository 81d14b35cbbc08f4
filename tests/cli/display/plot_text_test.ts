import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { plotText } from "../../../cli/display/plot_text.ts";
import type { MetricPlot } from "../../../runs/mod.ts";

const RISING = { run: "up", points: [{ x: 0, y: 0 }, { x: 10, y: 1 }] };
const FALLING = { run: "down", points: [{ x: 0, y: 1 }, { x: 10, y: 0 }] };
const PLOT: MetricPlot = { metric: "reward/mean", by: "round", curves: [RISING, FALLING] };
const only = (curve: MetricPlot["curves"][number]) => ({ ...PLOT, curves: [curve] });
const PLAIN = { columns: 40, color: false };

/** The braille characters of a line, and where each is. */
const dotted = (line: string) =>
  [...line].flatMap((one, i) => /[\u2801-\u28ff]/.test(one) ? [i] : []);

Deno.test("plotText() of a run has values at both axes, and a curve between them as wide as asked for", () => {
  const lines = plotText(only(RISING), PLAIN).split("\n");
  strictEqual(lines[0], "reward/mean of up, by round");
  match(lines[1]!, /^1\.0 ┤ +[⠁-⣿]+$/);
  match(lines[16]!, /^0\.0 ┤[⠁-⣿]+$/);
  match(lines[17]!, /^ {4}└┬─+┬─*/);
  match(lines[18]!, /^ {5}0 +5 +10$/);
  deepStrictEqual(lines.slice(1, 18).map((line) => [...line].length <= 40), Array(17).fill(true));
  strictEqual(dotted(lines[1]!).at(-1), 39);
});

Deno.test("plotText() without colours has a plot for each run, on the same axes", () => {
  const [up, down] = plotText(PLOT, PLAIN).split("\n\n").map((one) => one.split("\n"));
  deepStrictEqual([up![0], down![0]], [
    "reward/mean of up, by round",
    "reward/mean of down, by round",
  ]);
  const axes = (lines: string[]) => lines.slice(1).map((line) => line.slice(0, 5).slice(0, 4));
  deepStrictEqual(axes(up!), axes(down!));
  ok(dotted(up![1]!)[0]! > dotted(down![1]!)[0]!);
});

Deno.test("plotText() with colours has one plot, with a colour for each run and its name", () => {
  const text = plotText(PLOT, { columns: 40, color: true }).replaceAll("\x1b", "ESC");
  match(text, /^reward\/mean, by round\n/);
  match(text, /\nESC\[36m● upESC\[39m\nESC\[33m● downESC\[39m$/);
  match(text, /1\.0 ┤ESC\[33m[⠁-⣿]/);
  match(text, /0\.0 ┤ESC\[36m[⠁-⣿]/);
});

Deno.test("plotText() draws means alone, leaves gaps empty, and a value alone as one dot", () => {
  const jagged = { run: "j", points: [0, 1, 0, 1, 0, 1].map((y, x) => ({ x, y })) };
  match(plotText(only(jagged), { ...PLAIN, smooth: 6 }), /\n0\.7 ┤[^]*\n0\.4 ┤/);
  const gap = { run: "g", points: [{ x: 0, y: 1 }, { x: 10, y: 0, gap: true as const }] };
  for (const [curve, dots] of [[gap, 2], [{ run: "o", points: [{ x: 3, y: 0.5 }] }, 1]] as const) {
    strictEqual(dotted(plotText(only(curve), PLAIN)).length, dots);
  }
});

Deno.test("plotText() shows control characters of a metric's name, and survives a narrow terminal", () => {
  const text = plotText({ ...only(RISING), metric: "a\x1b[2J" }, { ...PLAIN, columns: 4 });
  match(text, /^a\\u001b\[2J of up/);
});
