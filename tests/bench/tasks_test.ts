import { deepStrictEqual, match, strictEqual, throws } from "node:assert/strict";
import { taskOptions } from "../../bench/tasks.ts";
import { withTable } from "../../bench/page_table.ts";
import { taskTable } from "../../bench/tasks_docs.ts";
import { learnedTask } from "../../bench/tasks_run.ts";

const lines = (points: unknown[]) => `${points.map((point) => JSON.stringify(point)).join("\n")}\n`;

function accuracy(round: number | null, metric: string, right: number): unknown {
  const name = `eval/${metric}`;
  const metrics = {
    [name]: right,
    [`${name}_low`]: right - 0.1,
    [`${name}_high`]: right + 0.1,
    [name.replace(/[^/]+$/, "mean_reward")]: right / 2,
  };
  return { key: "k", round, metrics };
}

Deno.test("learnedTask() orders each evaluation's rounds, and takes a source's first and last share", () => {
  const learned = lines([
    { key: "m", round: 1, metrics: { "data/sums/share": 0.5, "reward/mean": 0.1 } },
    { key: "m", round: 1, metrics: { "reward/marks/mean": 0.75 } },
    accuracy(2, "sums/avg_at_4", 0.5),
    accuracy(null, "sums/avg_at_4", 0.25),
    accuracy(null, "sums/greedy/avg_at_1", 0.75),
    { key: "m", round: 2, metrics: { "data/sums/share": 0.25, "reward/mean": 0.2 } },
  ]);
  const taught = lines(
    Array.from({ length: 30 }, (_, i) => ({
      key: "t",
      round: i + 1,
      metrics: { "policy/loss": i % 2 },
    })),
  );
  const { evaluations, shares, rewards, rewards_by_name, losses } = learnedTask({
    taught,
    learned,
  });
  deepStrictEqual(evaluations, {
    sums: [
      { round: 0, right: 0.25, low: 0.15, high: 0.35, reward: 0.125 },
      { round: 2, right: 0.5, low: 0.4, high: 0.6, reward: 0.25 },
    ],
    "sums/greedy": [{ round: 0, right: 0.75, low: 0.65, high: 0.85, reward: 0.375 }],
  });
  deepStrictEqual(shares, { sums: { first: 0.5, last: 0.25 } });
  deepStrictEqual(rewards, [{ round: 1, mean: 0.1 }, { round: 2, mean: 0.2 }]);
  deepStrictEqual(rewards_by_name, { marks: [{ round: 1, mean: 0.75 }] });
  deepStrictEqual(losses, Array.from({ length: 15 }, (_, i) => ({ round: 2 * i + 2, mean: 0.5 })));
});

Deno.test("taskTable() has a row for each evaluation and seed, with the share of a mixture's source", () => {
  const curve = [
    { round: 0, right: 0.25, low: 0.2, high: 0.3, reward: 0.375 },
    { round: 9, right: 0.5, low: 0.45, high: 0.55, reward: 0.625 },
  ];
  const one = {
    losses: [],
    rewards: [],
    rewards_by_name: {},
    evaluations: { sums: curve, "sums/greedy": curve },
    shares: { sums: { first: 0.5, last: 0.125 } },
  };
  const rows = taskTable({ 1: one, 2: one }).split("\n");
  strictEqual(rows.length, 2 + 4);
  strictEqual(
    rows[3],
    "| `sums` | 2 | 0.250 (0.200 to 0.300) | 0.500 (0.450 to 0.550) | 50 % to 13 % |",
  );
  match(rows[4]!, /^\| `sums\/greedy` \| 1 .* \| {2}\|$/);
  const summed = taskTable({ 1: { ...one, shares: {}, rewards_by_name: { marks: [] } } });
  strictEqual(
    summed.split("\n")[2],
    "| `sums` | 1 | 0.250 (0.200 to 0.300) | 0.500 (0.450 to 0.550) | 0.375 to 0.625 |",
  );
});

Deno.test("withTable() fills the place of a page, empty or not, and names a page without one", () => {
  const empty = "a\n\n<!-- Written by `deno task bench tasks --write`. -->\n<!-- End. -->\n\nb\n";
  const filled = withTable(empty, { bench: "tasks", table: "| one |" });
  match(filled, /-->\n\n\| one \|\n\n<!-- End\. -->\n\nb\n$/);
  strictEqual(withTable(filled, { bench: "tasks", table: "| one |" }), filled);
  throws(() => withTable(empty, { bench: "learning", table: "| one |" }), /has no lines/);
});

Deno.test("bench tasks reads its flags, and names those that it has", () => {
  deepStrictEqual(taskOptions([]), {
    tasks: ["reasoning_gym", "gsm8k"],
    seeds: [1, 2, 3],
    write: false,
  });
  deepStrictEqual(taskOptions(["--write", "--seeds", "4"]).seeds, [4]);
  const message = /there are --seeds 1,2,3, --write, and --tasks with some of reasoning_gym,gsm8k/;
  for (
    const wrong of [["--seeds"], ["--seeds", "x"], ["--rounds", "3"], ["--tasks", "constructor"]]
  ) {
    throws(() => taskOptions(wrong), message);
  }
});
