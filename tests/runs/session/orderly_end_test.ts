/**
 * How a session ends in order. Each trainer saves its newest version, so that a resume redoes
 * nothing.
 */
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { Engine, type NewRow, processOwner, type Provided } from "../../../engine/mod.ts";
import { runView } from "../../../runs/mod.ts";
import { online } from "../../../flows/online.ts";
import { fakeRun } from "../../../testing/mod.ts";
import { orderlyEnd, saveBeforeEnd } from "../../../runs/session/orderly_end.ts";
import type { CheckpointNote, PolicyTrainer } from "../../../workers/mod.ts";
import { onlineConfig, rowsOf, stores } from "../../flows/fixtures.ts";

/** The trainers that an engine was given, by the name of their resource. */
function trainersOf(resources: readonly Provided[]): PolicyTrainer[] {
  return resources.find(({ name }) => name === "trainers")!.value as PolicyTrainer[];
}

for (const [name, trainers] of [["grpo", 1], ["ppo", 2]] as const) {
  Deno.test(`a run of ${name} resumes from what was saved between checkpoints`, async () => {
    const { store, artifacts, dir, model } = await stores();
    const config = onlineConfig(model, {
      algorithm: { name },
      checkpoints: { every_rounds: 100 },
      rounds: 4,
    });
    const graph = online.build(config);
    const places = { store, artifacts, run: "run", dir, rows: { train: rowsOf(16) } };
    const leaving = new AbortController();
    const first = await fakeRun(places);
    const onEvent = ({ type }: { type: string }) => type === "round_closed" && leaving.abort();
    const engine = new Engine({
      store,
      artifacts,
      resources: first.resources,
      owner: processOwner(),
      onEvent,
    });
    await engine.create(online, config, { id: "run" });
    const letGo = async () => {
      const { epoch } = (await store.head("run"))!;
      const record = async (rows: NewRow[]) => void await store.append("run", epoch, rows);
      await saveBeforeEnd(trainersOf(first.resources), { record, log: () => {} });
    };
    strictEqual(
      (await engine.execute("run", graph, { drain: leaving.signal, letGo })).status,
      "interrupted",
    );
    const second = await fakeRun({ ...places, restart: "resume" });
    strictEqual(
      (await new Engine({ store, artifacts, resources: second.resources }).execute("run", graph))
        .status,
      "done",
    );
    const { recoveries } = await runView(store, (await store.head("run"))!, {
      workers: [],
      metrics: {},
    });
    const loads = recoveries.filter(({ action }) => action === "load_checkpoint");
    deepStrictEqual(loads.map(({ batches_redone }) => batches_redone), Array(trainers).fill(0));
  });
}

/** Notes what ends, in order. */
function recordedEnd(options: { drain?: AbortSignal; preempted?: () => boolean } = {}) {
  const done: string[] = [];
  const note = (name: string) => () => Promise.resolve(void done.push(name));
  const letGo = orderlyEnd({
    ...options,
    closeMetrics: note("metrics"),
    saveNow: note("save"),
    stopWorkers: note("workers"),
  });
  return { done, letGo };
}

Deno.test("orderlyEnd() saves nothing when nobody asked the run to stop", async () => {
  const { done, letGo } = recordedEnd({ drain: new AbortController().signal });
  await letGo();
  deepStrictEqual(done, ["metrics", "workers"]);
});

Deno.test("orderlyEnd() saves before the workers stop when the run should stop", async () => {
  const stop = new AbortController();
  const { done, letGo } = recordedEnd({ drain: stop.signal });
  stop.abort();
  deepStrictEqual(done, [], "in-flight work may finish first");
  await letGo();
  deepStrictEqual(done, ["metrics", "save", "workers"]);
});

Deno.test("orderlyEnd() saves at once when the machine goes, and again at the end", async () => {
  const stop = new AbortController();
  const { done, letGo } = recordedEnd({ drain: stop.signal, preempted: () => true });
  stop.abort();
  deepStrictEqual(done, ["save"]);
  await letGo();
  deepStrictEqual(done, ["save", "metrics", "save", "workers"]);
});

Deno.test("orderlyEnd() ends a session once, however often it is called", async () => {
  const { done, letGo } = recordedEnd();
  await Promise.all([letGo(), letGo()]);
  await letGo();
  deepStrictEqual(done, ["metrics", "workers"]);
});

Deno.test("saveBeforeEnd() saves the other trainers when one of them fails", async () => {
  const logged: string[] = [];
  const rows: NewRow[] = [];
  const record = (added: NewRow[]) => Promise.resolve(void rows.push(...added));
  const saving = (dir: string): PolicyTrainer["saveNow"] => async ({ key, attempt, record }) => {
    await record("note/checkpoint", "v1", { dir, key, attempt });
    return { dir } as CheckpointNote;
  };
  const trainers = [
    { saveNow: () => Promise.reject(new Error("the disk is full")) },
    { saveNow: () => Promise.resolve(null) },
    { saveNow: saving("/there") },
  ];
  await saveBeforeEnd(trainers, { record, log: (text) => void logged.push(text) });
  deepStrictEqual(logged.toSorted(), [
    "no checkpoint was saved before the workers end: the disk is full",
    "saved /there before the workers end",
  ]);
  deepStrictEqual(rows, [{
    kind: "note/checkpoint",
    key: "v1",
    value: JSON.stringify({ dir: "/there", key: "preempted", attempt: 1 }),
  }]);
});
