import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { type ArtifactRef, Batch } from "../../../../data/mod.ts";
import { drawEvaluationPairs, drawPairs } from "../../../../flows/mod.ts";
import { fakeBench } from "../alone.ts";
import { rowsOf } from "../../fixtures.ts";
import { pairsOf } from "../../preference_fixtures.ts";

const eight = pairsOf(8);
const data = { split: "train", rows: 8, digest: eight.digest };
const bench = await fakeBench(() => ({ rows: { train: eight, prompts: rowsOf(2) } }));
const DRAW = { data, round: 1, count: 4, seed: 1, updates_per_batch: 1, epochs_per_batch: 1 };

async function read(ref: ArtifactRef) {
  const batch = Batch.parse(await bench.artifacts.getJson(ref));
  ok(batch.kind === "preference");
  return batch;
}

const drawn = async (input: Partial<typeof DRAW> = {}) =>
  await read(await bench.done(drawPairs, { ...DRAW, ...input }));

Deno.test("drawPairs() makes a batch of preferences without columns or coefficients", async () => {
  const { pairs, ...rest } = await drawn({ count: 8 });
  deepStrictEqual(
    pairs.toSorted((a, b) => a.row_id.localeCompare(b.row_id)),
    Array.from({ length: 8 }, (_, n) => ({
      row_id: `pair-${n}`,
      prompt: `say ${n}`,
      chosen: `${n} good`,
      rejected: `${n} bad`,
      margin: 0,
    })),
  );
  const updates = [[0, 1, 2, 3, 4, 5, 6, 7]];
  deepStrictEqual(rest, { kind: "preference", columns: {}, temperature: 1, coef: {}, updates });
});

Deno.test("drawPairs() reads every pair once before it reads one again", async () => {
  const rounds = [await drawn(), await drawn({ round: 2 }), await drawn({ round: 3 })];
  const ids = rounds.map(({ pairs }) => pairs.map(({ row_id }) => row_id));
  strictEqual(new Set(ids.slice(0, 2).flat()).size, 8);
  strictEqual(new Set(ids[2]).size, 4);
});

Deno.test("drawPairs() cuts every epoch into as many steps as asked", async () => {
  const { updates } = await drawn({ updates_per_batch: 2, epochs_per_batch: 2 });
  deepStrictEqual(updates.slice(0, 2), [[0, 1], [2, 3]]);
  deepStrictEqual(updates.slice(2).map(({ length }) => length), [2, 2]);
  deepStrictEqual(updates.slice(2).flat().toSorted(), [0, 1, 2, 3]);
});

Deno.test("drawPairs() says how chats are rendered where the split does", async () => {
  const chat = { template_arguments: { thinking: false } };
  const batch = await read(await bench.done(drawPairs, { ...DRAW, data: { ...data, chat } }));
  deepStrictEqual(batch.chat, chat);
});

Deno.test("drawPairs() names a row that is no preference", async () => {
  const { digest } = rowsOf(2);
  const prompts = { split: "prompts", rows: 2, digest };
  const { outcome } = await bench.ran(drawPairs, { ...DRAW, data: prompts, count: 1 });
  ok(outcome.status === "failed");
  match(outcome.error.message, /Cannot compare the completions of row 'row-[01]' because/);
});

Deno.test("drawEvaluationPairs() takes the first pairs in their order, or all", async () => {
  for (const [count, ids] of [[3, 3], [null, 8], [9, 8]] as const) {
    const batch = await read(await bench.done(drawEvaluationPairs, { data, count }));
    const places = Array.from({ length: ids }, (_, place) => place);
    deepStrictEqual(batch.pairs.map(({ row_id }) => row_id), places.map((n) => `pair-${n}`));
    deepStrictEqual(batch.updates, [places]);
  }
});
