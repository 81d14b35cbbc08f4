/** What the pages show of the benchmark of tasks: data, a picture and one table. */
import { axisOf, curvesSvg } from "../runs/mod.ts";
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
  const accuracies = meansOf(seeds.map((seed) => seed.evaluations), ({ right }) => right);
  const rewards = meansOf(seeds.map((seed) => seed.rewards_by_name), (part) => part.mean)
    .map(({ name, points }) => ({ name: `reward ${name}`, points }));
  const series = [...accuracies, ...rewards];
  const highest = Math.max(...series.flatMap(({ points }) => points.map(({ y }) => y)));
  const y = axisOf({ least: 0, most: Math.min(1, highest * HEADROOM) || 1 }, { steps: 5 });
  return curvesSvg(series, {
    title: rewards.length === 0
      ? `held-out accuracy, mean of ${seeds.length} seeds`
      : `held-out accuracy, and rewards in training, mean of ${seeds.length} seeds`,
    x: "rounds of GRPO",
    y: rewards.length === 0 ? "right" : "share",
  }, { y, window: 1 });
}

/** Of each curve, by name, the means over the seeds. */
function meansOf<Point extends { round: number }>(
  seeds: readonly Record<string, Point[]>[],
  value: (point: Point) => number,
) {
  return Object.entries(seeds[0]!).map(([name, curve]) => ({
    name,
    points: curve.map(({ round }, i) => ({
      x: round,
      y: mean(seeds.map((curves) => value(curves[name]![i]!))),
    })),
  }));
}

/**
 * A row for each evaluation and seed: held-out accuracy before and after GRPO, with intervals. Of a
 * mixture, the sources' shares; of a reward that is a sum, its mean too.
 */
export function taskTable(bySeed: Readonly<Record<string, LearnedTask>>): string {
  const { evaluations, shares, rewards_by_name } = Object.values(bySeed)[0]!;
  const [mixed, summed] = [shares, rewards_by_name].map((named) => Object.keys(named).length > 0);
  const rows = Object.keys(evaluations).flatMap((name) =>
    Object.entries(bySeed).map(([seed, learned]) => {
      const [first, last] = [learned.evaluations[name]![0]!, learned.evaluations[name]!.at(-1)!];
      const share = learned.shares[name];
      const drawn = share ? `${percent(share.first)} to ${percent(share.last)}` : "";
      return [
        `\`${name}\``,
        seed,
        shown(first),
        shown(last),
        ...(summed ? [`${first.reward.toFixed(3)} to ${last.reward.toFixed(3)}`] : []),
        ...(mixed ? [drawn] : []),
      ];
    })
  );
  const head = ["evaluation", "seed", "before GRPO", "after GRPO"];
  if (summed) head.push("mean reward");
  if (mixed) head.push("share of the draws");
  return pageTable(head, rows);
}

const percent = (value: number) => `${(100 * value).toFixed(0)} %`;
const shown = ({ right, low, high }: Accuracy) =>
  `${right.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
