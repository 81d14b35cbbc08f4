import { deepStrictEqual, match, ok } from "node:assert/strict";
import { ArtifactStore, provide } from "../../../../engine/mod.ts";
import { Rows } from "../../../../flows/mod.ts";
import { drawEvaluation } from "../../../../flows/stages/rows/draw_prompts.ts";
import { dayOf } from "../../../../data/mod.ts";
import { openData, type OpenedSplit } from "../../../../flows/stages/rows/open_data.ts";
import { ranAlone } from "../alone.ts";
import { rowsOf, scratch } from "../../fixtures.ts";

const artifacts = new ArtifactStore(`${await scratch()}/artifacts`);
const places = { artifacts, resources: [provide(Rows, { train: rowsOf(3, "as-it-is") })] };
const slabs = { slab_groups: null, samplers: 1 };

/** Rows that a stage reads of an opened split, or why it cannot. */
async function read(data: OpenedSplit): Promise<string[] | string> {
  const { outcome } = await ranAlone(drawEvaluation, { data, count: null, slabs }, places);
  if (outcome.status === "done") {
    return outcome.output.flatMap(({ draws }) => draws.map(({ row }) => row.row_id));
  }
  ok(outcome.status === "failed");
  return outcome.error.message;
}

Deno.test("openData() records how many rows a split has, and their digest", async () => {
  const { outcome } = await ranAlone(openData, { split: "train" }, places);
  ok(outcome.status === "done");
  deepStrictEqual(outcome.output, { split: "train", rows: 3, digest: "as-it-is" });
});

Deno.test("openData() records the day for chat templates", async () => {
  const chat = { template_arguments: {} };
  const before = dayOf(Date.now());
  const { outcome } = await ranAlone(openData, { split: "train", chat }, places);
  ok(outcome.status === "done");
  const { date, ...rest } = outcome.output.chat!;
  deepStrictEqual(rest, chat);
  ok([before, dayOf(Date.now())].includes(date!)); // Midnight may come between.
});

Deno.test("a draw says how its chat is rendered, and the day", async () => {
  const chat = { template_arguments: {}, date: "2024-02-29" };
  const data = { split: "train", rows: 3, digest: "as-it-is", chat };
  const { outcome } = await ranAlone(drawEvaluation, { data, count: 1, slabs }, places);
  ok(outcome.status === "done");
  deepStrictEqual(outcome.output.map(({ draws }) => draws.map((draw) => draw.chat)), [[chat]]);
});

Deno.test("dayOf() is the day where the engine runs, as templates expect it", () => {
  deepStrictEqual(dayOf(new Date(2026, 0, 2, 0, 0, 1).getTime()), "2026-01-02");
  deepStrictEqual(dayOf(new Date(2026, 11, 31, 23, 59, 59).getTime()), "2026-12-31");
});

Deno.test("openData() names a split that the configuration does not give", async () => {
  const { outcome } = await ranAlone(openData, { split: "eval" }, places);
  ok(outcome.status === "failed");
  match(outcome.error.message, /Cannot read 'eval' rows .*: add data\.eval/);
});

Deno.test("an opened split leaves out the rows that were dropped", async () => {
  const dropped = await artifacts.putJson([1]);
  deepStrictEqual(await read({ split: "train", rows: 3, digest: "as-it-is", dropped }), [
    "row-0",
    "row-2",
  ]);
});

Deno.test("an opened split is refused once its files have changed", async () => {
  match(
    String(await read({ split: "train", rows: 9, digest: "as-it-was-before" })),
    /have changed since the run started: 9 rows then \(digest as-it-was-be\), 3 now \(as-it-is\)/,
  );
});
