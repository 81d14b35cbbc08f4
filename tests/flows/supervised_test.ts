import { deepStrictEqual, notStrictEqual, strictEqual } from "node:assert/strict";
import { SupervisedConfig } from "../../configs/mod.ts";
import type { ArtifactRef, Batch } from "../../data/mod.ts";
import { supervised } from "../../flows/supervised.ts";
import { execute, stores } from "./fixtures.ts";

/** The optimizer steps of each round of four rows. */
async function steps(trainer: Record<string, unknown>): Promise<number[][][]> {
  const home = await stores();
  const config = SupervisedConfig.parse({
    flow: "supervised",
    seed: 3,
    rounds: 2,
    rows_per_round: 4,
    model: { path: home.model },
    data: { train: [{ path: "train.jsonl" }] },
    trainer: { optimizer: { lr: 0.1 }, ...trainer },
  });
  const { outcome } = await execute(supervised, config, home);
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const drawn = home.store.rows("run").filter(({ kind, key }) =>
    kind === "result" && key.endsWith("/draw_rows")
  );
  const refs = drawn.map(({ value }) => (JSON.parse(value) as { output: ArtifactRef }).output);
  return await Promise.all(
    refs.map(async (ref) => (await home.artifacts.getJson(ref) as Batch).updates),
  );
}

Deno.test("supervised takes one optimizer step a round unless it is cut", async () => {
  deepStrictEqual(await steps({}), [[[0, 1, 2, 3]], [[0, 1, 2, 3]]]);
  deepStrictEqual(await steps({ updates_per_batch: 2 }), [[[0, 1], [2, 3]], [[0, 1], [2, 3]]]);
  const twice = await steps({ updates_per_batch: 2, epochs_per_batch: 3 });
  for (const round of twice) {
    deepStrictEqual(round.slice(0, 2), [[0, 1], [2, 3]]);
    deepStrictEqual([round.length, round.flat().toSorted()], [6, [
      0,
      0,
      0,
      1,
      1,
      1,
      2,
      2,
      2,
      3,
      3,
      3,
    ]]);
  }
  notStrictEqual(String(twice[0]), String(twice[1]));
});

Deno.test("supervised starts from a model that it creates from a recipe", async () => {
  const home = await stores();
  const config = SupervisedConfig.parse({
    flow: "supervised",
    rounds: 1,
    rows_per_round: 2,
    model: { recipe: "tiny_qwen", seed: 7 },
    data: { train: [{ path: "train.jsonl" }] },
    trainer: { optimizer: { lr: 0.1 } },
  });
  const { outcome } = await execute(supervised, config, home);
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const created = home.store.rows("run").find(({ kind, key }) =>
    kind === "intent" && key === "create_model"
  )!;
  deepStrictEqual((JSON.parse(created.value) as { input: unknown }).input, {
    recipe: "tiny_qwen",
    seed: 7,
  });
});
