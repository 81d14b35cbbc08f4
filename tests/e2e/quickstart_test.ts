import { ok, strictEqual } from "node:assert/strict";
import { computesOurFigures, missingLine, parsePage, timeless } from "../docs/markdown.ts";
import { rl, show } from "../crash/runs.ts";

/** Chosen before anything was tuned; the sizes were chosen on other seeds. */
const SEEDS = [1, 2, 3];

type Line = { key: string; metrics: Record<string, number> };

/** The mean reward of every online round, in order. A round that ran twice counts once. */
async function rewards(home: string, run: string): Promise<number[]> {
  const text = await Deno.readTextFile(`${home}/runs/${run}/metrics.jsonl`);
  const byRound = new Map<string, number>();
  for (const line of text.trim().split("\n").map((line) => JSON.parse(line) as Line)) {
    if (line.metrics["reward/mean"] !== undefined) {
      byRound.set(line.key, line.metrics["reward/mean"]);
    }
  }
  return [...byRound.values()];
}

/** The figures that the README shows below its first command, which is this run with seed 1. */
async function shownFigures(): Promise<string> {
  const { blocks } = parsePage(
    await Deno.readTextFile(new URL("../../README.md", import.meta.url)),
  );
  const at = blocks.findIndex(({ text }) => text.trim() === "npx -y deno@2 task rl");
  const lines = blocks[at + 1]!.text.split("\n").filter((line) =>
    /^(step|round|evaluation) /.test(line)
  );
  ok(lines.length >= 4, "the README shows steps, rounds and evaluations");
  return lines.join("\n");
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

for (const seed of SEEDS) {
  Deno.test(`the shipped quickstart learns with seed ${seed}`, async () => {
    const home = await Deno.makeTempDir({ prefix: "holdfast-quickstart-" });
    try {
      const args = [
        "run",
        "configs/quickstart.yaml",
        "--home",
        home,
        "--id",
        "q",
        `seed=${seed}`,
        `model.seed=${seed}`,
      ];
      const { code, output } = await rl(args, {});
      strictEqual(code, 0, output);
      const curve = await rewards(home, "q");
      strictEqual(curve.length, 120, "one reward per round");
      const [first, last] = [mean(curve.slice(0, 5)), mean(curve.slice(-5))];
      ok(first >= 0.1 && first <= 0.6, `mean reward of the first five rounds is ${first}`);
      ok(last >= first + 0.2, `mean reward rose from ${first} to ${last} only`);
      const { evaluations, ledger } = await show(home, "q");
      const accuracy = (name: string) => evaluations.find((one) => one.name === name)!.avg_at_k;
      const gain = accuracy("after_greedy") - accuracy("before_greedy");
      ok(gain >= 0.1, `greedy accuracy on held-out problems rose by ${gain} only`);
      strictEqual(ledger.read, 120 * 32);
      strictEqual(ledger.pending, 0);
      if (seed === 1 && computesOurFigures()) {
        strictEqual(
          missingLine(await shownFigures(), output, timeless),
          null,
          `the README shows another run than:\n${output}`,
        );
      }
      ok(
        output.split("\n").every((line) => line.length < 200),
        "one line per round, under 200 characters",
      );
    } finally {
      await Deno.remove(home, { recursive: true });
    }
  });
}
