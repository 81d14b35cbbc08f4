/** What the pages show of the learning bench: data, pictures and one table. */
import { curvesSvg } from "../runs/mod.ts";
import { pageTable, withTable } from "./page_table.ts";
import type { CurvePoint } from "./learning_run.ts";
import { mean, median, ROOT, rounded } from "./quickstart_run.ts";

/** By seed. */
export type Curves = Record<string, CurvePoint[]>;
type SeedResult = { first: number; last: number; gain: number; seconds: number; rounds: number };
/** `docs/learning/NAME.json`. `seeds`: the curves, `results` by seed what the criterion reads. */
type Recorded = { algorithm: string; columns: string[]; results: Record<string, SeedResult> };

/** Rounds at either end whose mean is shown. */
const ENDS = 5;
const PAGE = `${ROOT}docs/benchmarks.md`;

/** Mean of the first and of the last rounds. */
export function seedResult(curve: readonly CurvePoint[]): SeedResult {
  const values = curve.map(({ value }) => value);
  const [first, last] = [mean(values.slice(0, ENDS)), mean(values.slice(-ENDS))];
  const rest = { seconds: rounded(curve.at(-1)!.seconds)!, rounds: curve.length };
  return { first: rounded(first)!, last: rounded(last)!, gain: rounded(last - first)!, ...rest };
}

/**
 * Writes `docs/learning/NAME.json` with the numbers and `docs/algorithms/curves/NAME.svg` with the
 * picture.
 */
export async function writeCurves(
  algorithm: string,
  { curves, budget, label }: { curves: Curves; budget: number | null; label: string },
) {
  const each = <T>(of: (curve: CurvePoint[]) => T) =>
    Object.fromEntries(Object.entries(curves).map(([seed, curve]) => [seed, of(curve)]));
  const fields = {
    algorithm,
    budget_samples: budget,
    results: each(seedResult),
    columns: ["samples", "seconds", label],
    seeds: each((curve) =>
      curve.map((point) => [point.samples, rounded(point.seconds), rounded(point.value)])
    ),
  };
  const lines = Object.entries(fields).map(([name, value]) =>
    `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`
  );
  await Deno.mkdir(`${ROOT}docs/learning`, { recursive: true });
  await Deno.writeTextFile(
    `${ROOT}docs/learning/${algorithm}.json`,
    `{\n${lines.join(",\n")}\n}\n`,
  );
  const series = Object.entries(curves).map(([seed, curve]) => ({
    name: `seed ${seed}`,
    points: curve.map(({ seconds, value }) => ({ x: seconds, y: value })),
  }));
  const svg = curvesSvg(series, {
    title: algorithm,
    x: "seconds since the first round began",
    y: label,
  });
  await Deno.mkdir(`${ROOT}docs/algorithms/curves`, { recursive: true });
  await Deno.writeTextFile(`${ROOT}docs/algorithms/curves/${algorithm}.svg`, svg);
}

/** Puts the table of everything in `docs/learning` into its place in the page on benchmarks. */
export async function writeTable(): Promise<void> {
  const names = (await Array.fromAsync(Deno.readDir(`${ROOT}docs/learning`))).map(({ name }) =>
    name
  ).sort();
  const read = async (name: string) =>
    JSON.parse(await Deno.readTextFile(`${ROOT}docs/learning/${name}`)) as Recorded;
  const table = learningTable(
    await Promise.all(names.filter((name) => name.endsWith(".json")).map(read)),
  );
  const page = await Deno.readTextFile(PAGE);
  await Deno.writeTextFile(PAGE, withTable(page, { bench: "learning", table }));
}

/** One row for each algorithm: what its curve was at either end, per seed. */
export function learningTable(recorded: readonly Recorded[]): string {
  const seeds = [...new Set(recorded.flatMap(({ results }) => Object.keys(results)))];
  const rows = recorded.map(({ algorithm, columns, results }) => {
    const ends = seeds.map((seed) => {
      const result = results[seed];
      return result ? `${result.first.toFixed(2)} to ${result.last.toFixed(2)}` : "–";
    });
    const all = Object.values(results);
    const gain = Math.min(...all.map((result) => result.gain)).toFixed(2);
    const seconds = Math.round(median(all.map((result) => result.seconds)));
    return [
      `[\`${algorithm}\`](algorithms/curves/${algorithm}.svg)`,
      columns.at(-1)!,
      ...ends,
      gain,
      String(seconds),
    ];
  });
  const head = [
    "algorithm",
    "what",
    ...seeds.map((seed) => `seed ${seed}`),
    "smallest gain",
    "seconds",
  ];
  return pageTable(head, rows);
}
