const BARS = "▁▂▃▄▅▆▇█";
/** Values that a row of bars shows at most. */
export const SPARK_POINTS = 40;

/** Newest values as a row of bars, scaled between their own least and greatest. */
export function sparkline(values: readonly number[], points = SPARK_POINTS): string {
  const shown = values.slice(-points);
  const [least, most] = [Math.min(...shown), Math.max(...shown)];
  const scale = most > least ? (BARS.length - 1) / (most - least) : 0;
  return shown.map((value) => BARS[Math.round((value - least) * scale)]).join("");
}
