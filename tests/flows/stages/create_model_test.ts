import { deepStrictEqual, notStrictEqual, strictEqual } from "node:assert/strict";
import { sha256Hex } from "../../../engine/mod.ts";
import { createModel } from "../../../flows/mod.ts";
import { fakeBench } from "./alone.ts";

Deno.test("createModel() records the run's model directory and every file of it", async () => {
  const { dir, trainer, done } = await fakeBench();
  const model = await done(createModel, { recipe: "tiny", seed: 1 });
  const text = await Deno.readFile(`${dir}/run/model/weights.json`);
  deepStrictEqual(model, {
    path: `${dir}/run/model`,
    digest: sha256Hex(text),
    files: [{ path: "weights.json", sha256: sha256Hex(text), bytes: text.length }],
  });
  deepStrictEqual(trainer.calls.map(({ op, args }) => [op, args]), [
    ["create_model", { recipe: "tiny", seed: 1, dir: `${dir}/run/model` }],
  ]);
});

Deno.test("createModel() makes the same files for the same recipe and seed", async () => {
  const benches = [await fakeBench(), await fakeBench()];
  const [one, other] = await Promise.all(
    benches.map(({ done }) => done(createModel, { recipe: "tiny", seed: 1 })),
  );
  deepStrictEqual([one!.digest, one!.files], [other!.digest, other!.files]);
  const { done } = await fakeBench();
  notStrictEqual((await done(createModel, { recipe: "tiny", seed: 2 })).digest, one!.digest);
  notStrictEqual((await done(createModel, { recipe: "small", seed: 1 })).digest, one!.digest);
});

Deno.test("createModel() finds its model only while every file is whole", async () => {
  const { dir, done, finds } = await fakeBench();
  const model = await done(createModel, { recipe: "tiny", seed: 1 });
  strictEqual(await finds(createModel, model), true);
  const file = `${dir}/run/model/weights.json`;
  const text = await Deno.readTextFile(file);
  await Deno.writeTextFile(file, text.replace("0.", "1.")); // As long as before.
  strictEqual(await finds(createModel, model), false);
});
