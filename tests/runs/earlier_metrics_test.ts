import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { JournalRow, NewRow, RunHead, Store } from "../../engine/mod.ts";
import { MemoryStore } from "../../testing/mod.ts";
import { Home } from "../../runs/mod.ts";
import type { MetricsLine } from "../../runs/earlier_metrics.ts";
import { lastMetrics, ownPages, type Reading } from "../../runs/run_metrics.ts";
import { VERSIONS, withRecorded } from "../recorded/homes.ts";
import { createFakeRun, executeFake, freshFakeHome } from "./fake_home.ts";

async function linesOf(reading: Reading, run: string): Promise<MetricsLine[]> {
  const lines: MetricsLine[] = [];
  for await (const page of ownPages(reading, run)) lines.push(...page.map(({ line }) => line));
  return lines;
}

/** Stages that told metrics before metrics had rows of their own. */
const TOLD =
  /^(assign_credit|generate_slab|train_policy|train_critic|summarise_evaluation|evaluate_pairs)([#~]|$)/;

/** Keys of the results of those stages; of training only where there was a step. */
async function toldBy(store: Store, run: string): Promise<string[]> {
  const rows = await store.read(run);
  const trained = new Set(
    rows.flatMap((row, i) => row.kind === "note/version" ? [rows[i + 1]?.key] : []),
  );
  return rows.filter(({ kind, key, epoch }) =>
    kind === "result" && epoch > 0 && TOLD.test(key.split("/").at(-1)!)
  )
    .map(({ key }) => key)
    .filter((key) => !/train_(policy|critic)$/.test(key) || trained.has(key));
}

for (const version of VERSIONS) {
  Deno.test(`metrics of runs that ${version} recorded: what its notes tell, each line once, with round and version`, async () => {
    await withRecorded(version, async (dir) => {
      const home = Home.open(dir);
      for (const head of await home.store.heads()) {
        const lines = await linesOf(home, head.id);
        deepStrictEqual(
          lines.map(({ key }) => key).toSorted(),
          (await toldBy(home.store, head.id)).toSorted(),
          head.id,
        );
        for (const { key, loop, round, version, stage, metrics } of lines) {
          const [, named = null, number] = /^([^/]+)\/(\d+)\//.exec(key) ?? [];
          deepStrictEqual([loop, round], [named, number === undefined ? null : Number(number)]);
          ok(key.includes(stage) && Object.values(metrics).every(Number.isFinite), key);
          strictEqual(version !== null, stage.startsWith("train_"));
        }
        const [last] = await home.store.read(head.id, {
          kinds: ["note/round_metrics"],
          newest_first: true,
          limit: 1,
        });
        const shown = await lastMetrics(home, head);
        for (const [name, value] of Object.entries(last ? JSON.parse(last.value) : {})) {
          strictEqual(shown[name], value);
        }
      }
      await home.close();
    });
  });
}

/**
 * The journal as an engine of before would have left it up to `until`: with notes where metrics
 * are.
 */
async function aged(
  { store, head, until }: { store: Store; head: RunHead; until: number },
): Promise<MemoryStore> {
  const old = ({ kind, key, input_hash, value, seq }: JournalRow): NewRow[] => {
    const row = { kind, key, value, ...(input_hash && { input_hash }) };
    if (seq > until || kind !== "metrics") return [row];
    if (!key.includes("assign_credit")) return [];
    return [{ kind: "note/round_metrics", key, value: JSON.stringify(JSON.parse(value).metrics) }];
  };
  const made = new MemoryStore();
  const { id, name, entry, graph, graph_hash, config, packages, parent } = head;
  await made.create(
    { id, name, entry, graph, graph_hash, config, packages, parent },
    (await store.read(id)).flatMap(old),
  );
  return made;
}

Deno.test("a run that an older engine began shows each metric once, in order", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 3 });
  await executeFake(home, "a");
  const head = (await home.store.head("a"))!;
  const { artifacts, store } = home;
  const whole = await linesOf({ store, artifacts }, "a");
  for (const { seq } of (await store.read("a")).filter(({ kind }) => kind === "result")) {
    const lines = await linesOf({ store: await aged({ store, head, until: seq }), artifacts }, "a");
    deepStrictEqual(lines.map(({ key }) => key), whole.map(({ key }) => key));
    for (const [i, { metrics }] of lines.entries()) {
      for (const [name, value] of Object.entries(metrics)) {
        strictEqual(value, whole[i]!.metrics[name], name);
      }
    }
  }
});
