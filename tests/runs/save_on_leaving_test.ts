/** What is saved when a run is left in order: by each of its trainers, so that who resumes it redoes nothing. */
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { Engine, type NewRow, processOwner, type Provided } from "../../engine/mod.ts";
import { runView } from "../../runs/mod.ts";
import { online } from "../../flows/online.ts";
import { fakeRun } from "../../testing/mod.ts";
import type { PolicyTrainer } from "../../workers/mod.ts";
import { onlineConfig, rowsOf, stores } from "../flows/fixtures.ts";

/** The trainers that an engine was given, by the name of their resource. */
function trainersOf(resources: readonly Provided[]): PolicyTrainer[] {
  return resources.find(({ name }) => name === "trainers")!.value as PolicyTrainer[];
}

for (const [name, trainers] of [["grpo", 1], ["ppo", 2]] as const) {
  Deno.test(`${name}: left after a round without a checkpoint, a run goes on from what its trainers saved`, async () => {
    const { store, artifacts, dir, model } = await stores();
    const config = onlineConfig(model, { algorithm: { name }, checkpoints: { every_rounds: 100 }, rounds: 4 });
    const graph = online.build(config);
    const places = { store, artifacts, run: "run", dir, rows: { train: rowsOf(16) } };
    const leaving = new AbortController();
    const first = await fakeRun(places);
    const onEvent = ({ type }: { type: string }) => type === "round_closed" && leaving.abort();
    const engine = new Engine({ store, artifacts, resources: first.resources, owner: processOwner(), onEvent });
    await engine.create(online, config, { id: "run" });
    const letGo = async () => {
      const { epoch } = (await store.head("run"))!;
      const record = async (kind: NewRow["kind"], key: string, value: unknown) => {
        await store.append("run", epoch, [{ kind, key, value: JSON.stringify(value) }]);
      };
      await Promise.all(
        trainersOf(first.resources).map((trainer) => trainer.saveNow({ key: "preempted", attempt: 1, record })),
      );
    };
    strictEqual((await engine.execute("run", graph, { drain: leaving.signal, letGo })).status, "interrupted");
    const second = await fakeRun({ ...places, restart: "resume" });
    strictEqual(
      (await new Engine({ store, artifacts, resources: second.resources }).execute("run", graph)).status,
      "done",
    );
    const { recoveries } = await runView(store, (await store.head("run"))!, { workers: [], metrics: {} });
    const loads = recoveries.filter(({ action }) => action === "load_checkpoint");
    deepStrictEqual(loads.map(({ batches_redone }) => batches_redone), Array(trainers).fill(0));
  });
}
