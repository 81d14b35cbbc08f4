/** What the pages show of the benchmark of tasks: data, a picture and one table. */
import { curvesSvg } from "./curves_svg.ts";
import { pageTable, withTable } from "./page_table.ts";
import { mean, ROOT, rounded } from "./quickstart_run.ts";
import type { Accuracy, LearnedTask } from "./tasks_run.ts";

/** Above the highest point of a picture. */
const HEADROOM = 1.2;

/** Writes the table in the page `docs/runs/TASK.md`, and beside it the numbers and the picture. */
export async function writeTask(
  task: string,
  bySeed: Readonly<Record<string, LearnedTask>>,
): Promise<void> {
  const place = `${ROOT}docs/runs/${task}`;
  const page = withTable(await Deno.readTextFile(`${place}.md`), {
    bench: "tasks",
    table: taskTable(bySeed),
  });
  const numbers = (_: string, value: unknown) => typeof value === "number" ? rounded(value) : value;
  const seeds = Object.entries(bySeed).map(([seed, learned]) =>
    `${JSON.stringify(seed)}: ${JSON.stringify(learned, numbers)}`
  );
  await Deno.writeTextFile(`${place}.json`, `{\n${seeds.join(",\n")}\n}\n`);
  await Deno.writeTextFile(`${place}.svg`, picture(Object.values(bySeed)));
  await Deno.writeTextFile(`${place}.md`, page);
}

function picture(seeds: readonly LearnedTask[]): string {
  const series = Object.entries(seeds[0]!.evaluations).map(([name, curve]) => ({
    name,
    points: curve.map(({ round }, i) => ({
      x: round,
      y: mean(seeds.map(({ evaluations }) => evaluations[name]![i]!.right)),
    })),
  }));
  const highest = Math.max(...series.flatMap(({ points }) => points.map(({ y }) => y)));
  return curvesSvg(series, {
    title: `held-out accuracy, mean of ${seeds.length} seeds`,
    x: "rounds of GRPO",
    y: "right",
  }, { top: Math.min(1, highest * HEADROOM) || 1, means: false });
}

/** A row for each evaluation and seed: held-out accuracy before and after GRPO, with intervals. */
export function taskTable(bySeed: Readonly<Record<string, LearnedTask>>): string {
  const rows = Object.keys(Object.values(bySeed)[0]!.evaluations).flatMap((name) =>
    Object.entries(bySeed).map(([seed, { evaluations, shares }]) => {
      const curve = evaluations[name]!;
      const share = shares[name];
      const drawn = share ? `${percent(share.first)} to ${percent(share.last)}` : "";
      return [`\`${name}\``, seed, shown(curve[0]!), shown(curve.at(-1)!), drawn];
    })
  );
  const head = ["evaluation", "seed", "before GRPO", "after GRPO", "share of the draws"];
  return pageTable(head, rows);
}

const percent = (value: number) => `${(100 * value).toFixed(0)} %`;
const shown = ({ right, low, high }: Accuracy) =>
  `${right.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
