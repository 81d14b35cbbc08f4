import { deepStrictEqual } from "node:assert/strict";
import { Preparing } from "./preparing.ts";

Deno.test("lengths in characters are code points, with the longest completion", async () => {
  const run = await Preparing.of({
    "a.jsonl": [
      { prompt: "😀😀", chosen: "a", rejected: "b" },
      { prompt: "😀😀", chosen: "a", rejected: "bcde" },
      { prompt: "😀", chosen: "a", rejected: "b" },
    ],
  }, {
    inputs: [{ path: "DIR/a.jsonl" }],
    needs: "preference",
    lengths: { prompt_characters_min: 2, prompt_characters_max: 2, sequence_characters_max: 3 },
  });
  await run.done();
  const { rows, dropped_rows } = await run.card();
  deepStrictEqual(rows, { read: 3, written: 1, dropped: { too_long: 1, too_short: 1 } });
  deepStrictEqual(dropped_rows.map(({ because }) => because), [
    "6 characters of the sequence, the limit is 3",
    "1 characters of the prompt, the limit is 2",
  ]);
});

Deno.test("the split of a row is its input's, or drawn by its id", async () => {
  const rows = (text: string) => Array.from({ length: 40 }, (_, i) => ({ prompt: `${text} ${i}` }));
  const run = await Preparing.of({ "a.jsonl": rows("a"), "b.jsonl": rows("b") }, {
    inputs: [{ path: "DIR/a.jsonl" }, { path: "DIR/b.jsonl", split: "test" }],
    splits: { train: 1, eval: 1 },
  });
  await run.done();
  deepStrictEqual((await run.card()).splits.map(({ split, rows }) => [split, rows]), [
    ["eval", 16],
    ["test", 40],
    ["train", 24],
  ]);
});
