import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import type { EngineEvent, RunHead } from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { forkRun, Home, MetricsFile } from "../../../runs/mod.ts";
import type { MetricsLine } from "../../../runs/tracking/run_metrics.ts";
import { inheritedPages, lastMetrics, ownPages } from "../../../runs/tracking/run_metrics.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";
import { rowsOf } from "../../flows/fixtures.ts";

/** Two rounds with a checkpoint each, and an evaluation before and after. */
const OVERRIDES = {
  rounds: 3,
  evaluate: { problems: 2, samples_per_prompt: 2 },
  checkpoints: { every_rounds: 1, keep_last: 1 },
};
const ROWS = { train: rowsOf(16), eval: rowsOf(4) };

async function freshRun(id: string): Promise<{ home: Home; head: RunHead }> {
  const home = await freshFakeHome();
  const path = `${home.dir}/train.jsonl`;
  const data = { train: [{ path }], eval: [{ path }], on_long_prompt: "unchecked" };
  return { home, head: await createFakeRun(home, id, { ...OVERRIDES, data }) };
}

const fileOf = (home: Home, id: string) => `${home.runDir(id)}/metrics.jsonl`;

async function linesOf(home: Home, id: string): Promise<MetricsLine[]> {
  const text = await Deno.readTextFile(fileOf(home, id));
  strictEqual(text.at(-1), "\n");
  return text.trimEnd().split("\n").map((line) => JSON.parse(line));
}

/** What the journal says the lines are. */
async function derived(home: Home, id: string): Promise<MetricsLine[]> {
  const head = (await home.store.head(id))!;
  const lines: MetricsLine[] = [];
  for (const pages of [inheritedPages(home, head), ownPages(home, id)]) {
    for await (const page of pages) lines.push(...page.map(({ line }) => line));
  }
  return lines;
}

/** One engine's life at a run, with its file, which it leaves as a crash finds it. */
async function life(home: Home, id: string, crash_after_appends?: number): Promise<void> {
  const store = (home.store as MemoryStore).restarted({ crash_after_appends });
  const here = new Home(home.dir, { store, artifacts: home.artifacts });
  await Deno.mkdir(home.runDir(id), { recursive: true });
  const head = (await home.store.head(id))!;
  const file = new MetricsFile(here, { head, owns: () => Promise.resolve(true) });
  const complain = console.error;
  console.error = () => {}; // That a dead store cannot be read.
  try {
    const onEvent = (event: EngineEvent) => file.on(event);
    await executeFake(here, id, { store, rows: ROWS, onEvent, beforeEnd: () => file.flush() });
  } catch (error) {
    ok(error instanceof Crashed, String(error));
  } finally {
    await file.close();
    console.error = complain;
  }
}

/**
 * As it is compared with another run's: without what says when, in an order that no clock decides.
 */
function sorted(lines: MetricsLine[]): string[] {
  const timeless = ({ at_ms: _, metrics, ...line }: MetricsLine) => {
    const numbers = Object.entries(metrics).filter(([name]) => !name.startsWith("time/"));
    return JSON.stringify({ ...line, metrics: Object.fromEntries(numbers) });
  };
  return lines.map(timeless).toSorted();
}

function neverBackward(lines: MetricsLine[]): void {
  const reached = new Map<string, number>();
  for (const { loop, round } of lines) {
    if (loop === null) continue;
    ok(round! >= (reached.get(loop) ?? 0), `${loop} ${round} after ${reached.get(loop)}`);
    reached.set(loop, round!);
  }
}

/** What may become of a file between two engines. */
const DAMAGE: Record<string, (path: string) => Promise<void>> = {
  none: () => Promise.resolve(),
  torn: async (path) => await Deno.truncate(path, Math.floor((await Deno.stat(path)).size / 2)),
  doubled: async (path) =>
    await Deno.writeTextFile(path, await Deno.readTextFile(path), { append: true }),
  garbage: async (path) => await Deno.writeTextFile(path, "\u0000{"),
  empty: async (path) => await Deno.writeTextFile(path, ""),
  gone: async (path) => await Deno.remove(path),
};

Deno.test("metrics.jsonl names round, stage and version in every line", async () => {
  const { home } = await freshRun("a");
  await life(home, "a");
  const lines = await linesOf(home, "a");
  neverBackward(lines);
  deepStrictEqual(lines, await derived(home, "a"));
  const versions = (await home.store.read("a", { kinds: ["round"] })).map(({ value }) =>
    JSON.parse(value).carried.policy.version as string
  );
  const of = (stage: string, round: number | null) =>
    lines.filter((line) => line.stage === stage && line.round === round);
  for (const round of [1, 2, 3]) {
    deepStrictEqual(of("train_policy", round).map(({ version, loop }) => [version, loop]), [[
      versions[round - 1],
      "round",
    ]]);
    const [credit] = of("assign_credit", round);
    ok(credit!.metrics["reward/mean"]! > 0);
    if (round > 1) strictEqual(credit!.version, versions[round - 2]);
    ok(of("generate_slab", round).every(({ version }) => version === credit!.version));
  }
  const evaluations = of("summarise_evaluation", null).map(({ loop, version }) => [loop, version]);
  deepStrictEqual(evaluations.filter(([, version]) => version === versions[2]).length, 2);
  strictEqual(evaluations.length, 4);
});

Deno.test("metrics.jsonl ends whole, even after a kill at any append", async () => {
  const { home: calm } = await freshRun("a");
  await life(calm, "a");
  const wanted = sorted(await linesOf(calm, "a"));
  const damages = fc.constantFrom(...Object.keys(DAMAGE));
  const kills = fc.array(fc.record({ append: fc.integer({ min: 1, max: 40 }), damage: damages }), {
    minLength: 1,
    maxLength: 3,
  });
  await fc.assert(
    fc.asyncProperty(kills, async (troubles) => {
      const { home } = await freshRun("a");
      for (const { append, damage } of troubles) {
        if ((await home.store.head("a"))!.status !== "done") await life(home, "a", append);
        await DAMAGE[damage]!(fileOf(home, "a")).catch((error) =>
          ok(error instanceof Deno.errors.NotFound)
        );
      }
      const ended = (await home.store.head("a"))!.status === "done";
      await (ended ? MetricsFile.remake(home, (await home.store.head("a"))!) : life(home, "a"));
      const head = (await home.store.head("a"))!;
      strictEqual(head.status, "done");
      const lines = await linesOf(home, "a");
      deepStrictEqual(sorted(lines), wanted);
      deepStrictEqual(lines, await derived(home, "a"));
      neverBackward(lines);
      const last = JSON.parse(await Deno.readTextFile(`${home.runDir("a")}/metrics.json`));
      deepStrictEqual(last, await lastMetrics(home, head));
      const names = [...Deno.readDirSync(home.runDir("a"))].map(({ name }) => name).filter((name) =>
        /metrics/.test(name)
      );
      deepStrictEqual(names.toSorted(), ["metrics.json", "metrics.jsonl"]);
    }),
    { numRuns: 25 },
  );
});

Deno.test("metrics.jsonl of a fork begins with its parent's lines", async () => {
  const { home } = await freshRun("a");
  await life(home, "a");
  const whole = await linesOf(home, "a");
  for (const round of [0, 1, 2]) {
    const id = `b${round}`;
    const config = ["trainer.optimizer.lr=0.01"];
    await forkRun(home, (await home.store.head("a"))!, { round, id, overrides: config });
    await life(home, id, 6);
    await life(home, id);
    const lines = await linesOf(home, id);
    deepStrictEqual(lines, await derived(home, id));
    neverBackward(lines);
    deepStrictEqual(lines.map(({ key }) => key).toSorted(), whole.map(({ key }) => key).toSorted());
    const shared = lines.filter((line) => line.round !== null && line.round <= round);
    deepStrictEqual(shared, whole.filter((line) => line.round !== null && line.round <= round));
    const [first] = lines.filter((line) =>
      line.stage === "train_policy" && line.round === round + 1
    );
    ok(
      !whole.some(({ version }) => version === first!.version),
      "its first own step has other settings",
    );
  }
});

Deno.test("a superseded engine adds nothing to its successor's metrics", async () => {
  const { home, head } = await freshRun("a");
  await Deno.mkdir(home.runDir("a"), { recursive: true });
  const started = (epoch: number) =>
    ({ type: "run_started", run: "a", at_ms: 0, epoch, resumed: false, name: "a" }) as const;
  const files = [1, 2].map(() =>
    new MetricsFile(home, { head, owns: () => Promise.resolve(true) })
  ); // It was frozen after it had looked.
  files[0]!.on(started(1));
  await files[0]!.flush();
  files[1]!.on(started(2));
  await files[1]!.flush();
  await executeFake(home, "a", { rows: ROWS });
  await files[0]!.close();
  strictEqual(await Deno.readTextFile(fileOf(home, "a")), "");
  await files[1]!.close();
  deepStrictEqual(await linesOf(home, "a"), await derived(home, "a"));
});
