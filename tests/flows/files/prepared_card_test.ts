import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import {
  cardPage,
  droppedTable,
  PreparedCard,
  relativeRecipe,
} from "../../../flows/files/prepared_card.ts";

const card = PreparedCard.parse({
  format: "holdfast prepared data 1",
  name: "n",
  rows: { read: 5, written: 3, dropped: { duplicate: 1, too_long: 1 } },
  splits: [{ split: "train", file: "train.parquet", rows: 3, bytes: 9, sha256: "ab" }],
  inputs: [
    { file: "a", bytes: 1, sha256: "a", read: 3, written: 2, dropped: { duplicate: 1 } },
    { file: "b", bytes: 1, sha256: "b", read: 2, written: 1, dropped: { too_long: 1 } },
  ],
  evaluation_sets: [{ name: "held", problems: 2, digest: "d", rows_dropped: 0 }],
  dropped_rows: [{ file: "a", row: 2, reason: "duplicate", because: "a | b\nc" }],
  recipe: {},
});

Deno.test("droppedTable() has a column for each reason, and a sum of several files", () => {
  deepStrictEqual(droppedTable(card), {
    header: ["file", "read", "written", "duplicate", "too_long"],
    lines: [
      ["a", "3", "2", "1", "0"],
      ["b", "2", "1", "0", "1"],
      ["all", "5", "3", "1", "1"],
    ],
  });
});

Deno.test("cardPage() keeps cells in their rows, and leaves out what is empty", () => {
  const page = cardPage(card);
  match(page, /\| a \| 2 \| duplicate \| a \\\| b c \|/);
  match(page, /\| held \| 2 \| 0 \|/);
  strictEqual(page.includes("written as messages"), false);
  const splits = card.splits.map((split) => ({ ...split, texts_as_messages: 2 }));
  match(cardPage({ ...card, splits }), /^`train`: 2 prompts were texts\. They are written as/m);
  const plain = cardPage({ ...card, evaluation_sets: [], dropped_rows: [] });
  strictEqual(/Evaluation sets|Examples/.test(plain), false);
});

Deno.test("relativeRecipe() starts paths from the card's directory, and orders keys", () => {
  const recipe = {
    output: "/d/out",
    inputs: [{ path: "/d/in/a.jsonl", fields: { prompt: "/q" } }],
    a: { python: "python3", path: "/d/out/x" },
  };
  strictEqual(
    JSON.stringify(relativeRecipe(recipe, "/d/out")),
    '{"a":{"path":"x","python":"python3"},' +
      '"inputs":[{"fields":{"prompt":"/q"},"path":"../in/a.jsonl"}],"output":"."}',
  );
});
