import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { type ArtifactRef, Batch, type Row, tableOf } from "../../../../data/mod.ts";
import { drawCompletions, drawEvaluationCompletions } from "../../../../flows/mod.ts";
import { fakeBench } from "../alone.ts";
import { rowsOf } from "../../fixtures.ts";

/** Pairs in even places, labelled completions in odd ones. */
const mixed = tableOf(
  Array.from({ length: 6 }, (_, n): Row => {
    const row = { row_id: `row-${n}`, prompt: `say ${n}`, completion: `${n} good`, columns: {} };
    return n % 2 === 0 ? { ...row, rejected: `${n} bad` } : { ...row, label: n === 1 };
  }),
  "mixed",
);
const data = { split: "train", rows: 6, digest: mixed.digest };
const bench = await fakeBench(() => ({ rows: { train: mixed, prompts: rowsOf(2) } }));
const DRAW = {
  data,
  round: 1,
  count: 6,
  seed: 1,
  updates_per_batch: 1,
  epochs_per_batch: 1,
  mismatched: true,
};

async function read(ref: ArtifactRef) {
  const batch = Batch.parse(await bench.artifacts.getJson(ref));
  ok(batch.kind === "unpaired");
  return batch;
}

const drawn = async (input: Partial<typeof DRAW> = {}) =>
  await read(await bench.done(drawCompletions, { ...DRAW, ...input }));

Deno.test("drawCompletions() makes one completion of a labelled row and two of a pair", async () => {
  const { completions, mismatched, updates, ...rest } = await drawn();
  deepStrictEqual(
    completions.toSorted((a, b) =>
      a.row_id.localeCompare(b.row_id) || Number(b.label) - Number(a.label)
    ).map(({ row_id, completion, label }) => [row_id, completion, label]),
    [
      ["row-0", "0 good", true],
      ["row-0", "0 bad", false],
      ["row-1", "1 good", true],
      ["row-2", "2 good", true],
      ["row-2", "2 bad", false],
      ["row-3", "3 good", false],
      ["row-4", "4 good", true],
      ["row-4", "4 bad", false],
      ["row-5", "5 good", false],
    ],
  );
  deepStrictEqual(mismatched!.toSorted((a, b) => a - b), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  ok(mismatched!.every((place, i) => completions[place]!.prompt !== completions[i]!.prompt));
  deepStrictEqual(updates, [[0, 1, 2, 3, 4, 5, 6, 7, 8]]);
  deepStrictEqual(rest, { kind: "unpaired", columns: {}, temperature: 1, coef: {} });
});

Deno.test("drawCompletions() draws the same again, mismatched completions too", async () => {
  deepStrictEqual(await drawn(), await drawn());
  strictEqual((await drawn({ mismatched: false })).mismatched, undefined);
});

Deno.test("drawCompletions() keeps both sides of a pair in one step", async () => {
  const { completions, updates } = await drawn({ updates_per_batch: 3, epochs_per_batch: 2 });
  strictEqual(updates.length, 6);
  for (const step of updates) {
    const rows = step.map((place) => completions[place]!.row_id);
    strictEqual(new Set(rows).size, 2);
    for (const row of rows) {
      const all = completions.filter(({ row_id }) => row_id === row).length;
      strictEqual(rows.filter((one) => one === row).length, all);
    }
  }
});

Deno.test("drawCompletions() names a row without a label", async () => {
  const { digest } = rowsOf(2);
  const prompts = { split: "prompts", rows: 2, digest };
  const { outcome } = await bench.ran(drawCompletions, { ...DRAW, data: prompts, count: 1 });
  ok(outcome.status === "failed");
  match(outcome.error.message, /Cannot learn from the completion of row 'row-[01]' because/);
});

Deno.test("drawEvaluationCompletions() takes the first rows in their order, or all", async () => {
  for (const [count, size] of [[3, 5], [null, 9], [9, 9]] as const) {
    const draw = { data, count, mismatched: true };
    const batch = await read(await bench.done(drawEvaluationCompletions, draw));
    strictEqual(batch.completions.length, size);
    deepStrictEqual(batch.completions.slice(0, 2).map(({ label }) => label), [true, false]);
    deepStrictEqual(batch.updates, [Array.from({ length: size }, (_, place) => place)]);
  }
});
