import { deepStrictEqual, ok } from "node:assert/strict";
import { Batch } from "../../../../data/mod.ts";
import { ArtifactStore, provide } from "../../../../engine/mod.ts";
import { Rows } from "../../../../flows/mod.ts";
import { drawSupervised } from "../../../../flows/stages/rows/draw_rows.ts";
import { ranAlone } from "../alone.ts";
import { rowsOf, scratch } from "../../fixtures.ts";

const artifacts = new ArtifactStore(`${await scratch()}/artifacts`);
const train = rowsOf(4);
const data = { split: "train", rows: 4, digest: train.digest };
const places = { artifacts, resources: [provide(Rows, { train })] };

async function batch(input: Partial<Parameters<typeof ranAlone>[1] & object> = {}) {
  const once = { updates_per_batch: 1, epochs_per_batch: 1 };
  const draw = { data, round: 1, count: 4, seed: 1, ...once, ...input };
  const { outcome } = await ranAlone(drawSupervised, draw, places);
  ok(outcome.status === "done");
  const parsed = Batch.parse(await artifacts.getJson(outcome.output));
  ok(parsed.kind === "supervised");
  return parsed;
}

Deno.test("drawSupervised() makes one step of a round's rows", async () => {
  const { rows, updates, temperature, coef } = await batch();
  deepStrictEqual(rows.map(({ row_id }) => row_id).toSorted(), [
    "row-0",
    "row-1",
    "row-2",
    "row-3",
  ]);
  deepStrictEqual([updates, temperature, coef], [[[0, 1, 2, 3]], 1, {}]);
});

Deno.test("drawSupervised() cuts every epoch into as many steps as asked", async () => {
  const { updates } = await batch({ updates_per_batch: 2, epochs_per_batch: 2 });
  deepStrictEqual(updates.slice(0, 2), [[0, 1], [2, 3]]);
  deepStrictEqual(updates.slice(2).flat().toSorted(), [0, 1, 2, 3]);
});

Deno.test("drawSupervised() continues where the round before it ended", async () => {
  const rows = [await batch({ count: 2 }), await batch({ count: 2, round: 2 })];
  const read = rows.flatMap(({ rows }) => rows.map(({ row_id }) => row_id));
  deepStrictEqual(read.toSorted(), ["row-0", "row-1", "row-2", "row-3"]);
});

Deno.test("drawSupervised() says how chats are rendered where the split does", async () => {
  deepStrictEqual("chat" in await batch(), false);
  const chat = { template_arguments: { thinking: false } };
  deepStrictEqual((await batch({ data: { ...data, chat } })).chat, chat);
});
