import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { Optimizer } from "../../../data/mod.ts";
import { exportCritic, exportPolicy, prepareCritic } from "../../../flows/mod.ts";
import { exportModel } from "../../../flows/stages/export_policy.ts";
import { fakeBench, valuesOf } from "./alone.ts";

Deno.test("exportPolicy() writes the weights under the run and records them", async () => {
  const { dir, model, ran, start } = await fakeBench();
  const policy = await start();
  const { outcome, rows } = await ran(exportPolicy, { policy, name: "last" });
  const publication = outcome.status === "done" ? outcome.output : null;
  deepStrictEqual([publication?.version, publication?.dir], [policy.version, `${dir}/run/last`]);
  const file = "weights.json";
  strictEqual(
    await Deno.readTextFile(`${dir}/run/last/${file}`),
    await Deno.readTextFile(`${model}/${file}`),
  );
  deepStrictEqual(valuesOf(rows, "note/exported"), { last: { policy, publication } });
});

Deno.test("an adapter is merged only if another chain of versions starts from it", async () => {
  const { done, trainer, start } = await fakeBench();
  const policy = await start();
  await done(exportPolicy, { policy, name: "last" });
  await done(exportModel, { policy, name: "warm" });
  const forms = trainer.calls.filter(({ op }) => op === "publish").map(({ args }) => {
    const { dir, form } = args as { dir: string; form: string };
    return [dir.split("/").at(-1), form];
  });
  // The first export brings the policy onto the trainer, and is asked for again.
  deepStrictEqual(forms, [["last", "adapter"], ["last", "adapter"], ["warm", "merged"]]);
});

Deno.test("exportCritic() asks the value model's trainer alone", async () => {
  const { critic, done, model, trainer } = await fakeBench();
  const optimizer = Optimizer.parse({ lr: 0.1 });
  const value = await done(prepareCritic, { model_path: model, optimizer });
  strictEqual((await done(exportCritic, { policy: value, name: "value" })).version, value.version);
  deepStrictEqual([trainer.calls.length, critic.calls.at(-1)!.op], [0, "publish"]);
});

for (const name of ["model", "publications", "references", "faults", "a/b", "..", ""]) {
  Deno.test(`exportPolicy() refuses '${name}', which would replace other files`, async () => {
    const { ran, start, trainer } = await fakeBench();
    const { outcome } = await ran(exportPolicy, { policy: await start(), name });
    strictEqual(outcome.status, "failed");
    deepStrictEqual(trainer.calls.map(({ op }) => op), ["inspect_model"]);
  });
}

Deno.test("exportPolicy() finds its directory only while it has every file in full", async () => {
  const { dir, done, finds, start } = await fakeBench();
  const exported = await done(exportPolicy, { policy: await start(), name: "last" });
  strictEqual(await finds(exportPolicy, exported), true);
  await Deno.truncate(`${dir}/run/last/weights.json`, 1);
  strictEqual(await finds(exportPolicy, exported), false);
  // A directory of a different run, as a fork has them, is not this run's to make.
  strictEqual(await finds(exportPolicy, { ...exported, dir: `${dir}/parent/last` }), true);
});
