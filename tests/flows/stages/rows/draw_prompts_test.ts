import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { ArtifactStore, provide } from "../../../../engine/mod.ts";
import { Rows } from "../../../../flows/mod.ts";
import { drawEvaluation, drawPrompts } from "../../../../flows/stages/rows/draw_prompts.ts";
import { ranAlone } from "../alone.ts";
import { rowsOf, scratch } from "../../fixtures.ts";

const artifacts = new ArtifactStore(`${await scratch()}/artifacts`);
const train = rowsOf(6);
const data = { split: "train", rows: 6, digest: train.digest };
const places = { artifacts, resources: [provide(Rows, { train })] };
const slabs = { slab_groups: 2, samplers: 1 };

async function drawn(round: number, seed = 3, prompt_tokens_max?: number) {
  const bounded = { ...data, ...(prompt_tokens_max && { prompt_tokens_max }) };
  const input = { data: bounded, round, count: 3, seed, slabs };
  const { outcome } = await ranAlone(drawPrompts, input, places);
  ok(outcome.status === "done");
  return outcome.output;
}

const rowsIn = (slabsDrawn: Awaited<ReturnType<typeof drawn>>) =>
  slabsDrawn.flatMap(({ draws }) => draws.map(({ row }) => row.row_id));

Deno.test("drawPrompts() numbers draws through the rounds and cuts them into slabs", async () => {
  const numbers = async (round: number) =>
    (await drawn(round)).map(({ draws }) => draws.map(({ draw }) => draw));
  deepStrictEqual(await numbers(1), [[0, 1], [2]]);
  deepStrictEqual(await numbers(2), [[3, 4], [5]]);
});

Deno.test("drawPrompts() reads every row once before it reads one again", async () => {
  const rows = [...rowsIn(await drawn(1)), ...rowsIn(await drawn(2))];
  deepStrictEqual(rows.toSorted(), [0, 1, 2, 3, 4, 5].map((n) => `row-${n}`));
});

Deno.test("drawPrompts() gives the same draws for the same seed", async () => {
  deepStrictEqual(await drawn(2), await drawn(2));
  const orders = await Promise.all([1, 2, 3, 4].map(async (seed) => rowsIn(await drawn(1, seed))));
  ok(new Set(orders.map((order) => order.join())).size > 1);
});

Deno.test("drawPrompts() gives each draw the bound that its prompt is cut to", async () => {
  for (const { draws } of await drawn(1, 3, 7)) {
    for (const draw of draws) strictEqual(draw.prompt_tokens_max, 7);
  }
});

Deno.test("drawEvaluation() takes the first rows in their order, or all", async () => {
  const firstRows = async (count: number | null) => {
    const { outcome } = await ranAlone(drawEvaluation, { data, count, slabs }, places);
    ok(outcome.status === "done");
    return rowsIn(outcome.output);
  };
  deepStrictEqual(await firstRows(2), ["row-0", "row-1"]);
  strictEqual((await firstRows(null)).length, 6);
  strictEqual((await firstRows(99)).length, 6);
});
