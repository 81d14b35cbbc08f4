/** An axis of a plot: ticks at round numbers, which enclose the values. */
export type Axis = { from: number; to: number; ticks: readonly Tick[] };
type Tick = { value: number; text: string };

/** A smaller part of the values than this is rounding, so the values count as one. */
const FLAT = 1e-12;
/** Below, numbers lose digits. */
const LEAST = 1e-300;

/** A value may be beyond the axis by this share of a step: a loss of -1e-9 needs no tick below 0. */
const EDGE = 1e-6;

/** `steps`: about how many. `step_min`: 1 where there is nothing between whole numbers. */
type Steps = { steps: number; step_min?: number };

/** The axis of values from `least` to `most`. One value alone is in its middle. */
export function axisOf(
  { least, most }: { least: number; most: number },
  { steps, step_min = 0 }: Steps,
): Axis {
  const size = Math.max(Math.abs(least), Math.abs(most));
  if (!(most - least > Math.max(FLAT * size, LEAST))) {
    const around = size > LEAST / FLAT ? Math.max(step_min, size / 10) : 1;
    return axisOf({ least: least - around, most: most + around }, { steps, step_min });
  }
  const step = Math.max(step_min, niceStep((most - least) / steps));
  const [first, last] = [Math.floor(least / step + EDGE), Math.ceil(most / step - EDGE)];
  const values = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  const ticks = values.map((value) => ({ value, text: tickText(value, { step, size }) }));
  return { from: values[0]!, to: values.at(-1)!, ticks };
}

/** How far along an axis a value is, from 0 to 1. */
export function share(value: number, { from, to }: Axis): number {
  return (value - from) / (to - from);
}

/** The smallest of 1, 2, 5, 10, 20, ... that is not below `least`. */
export function niceStep(least: number): number {
  if (!(least > LEAST)) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least)!;
}

/** As many decimals as the step needs; where that takes too much room, an exponent. */
function tickText(value: number, { step, size }: { step: number; size: number }): string {
  if (step >= 1e-4 && size < 1e6) return value.toFixed(Math.max(0, Math.ceil(-Math.log10(step))));
  return value === 0 ? "0" : Number(value.toPrecision(12)).toExponential();
}
