import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { Preparing } from "./preparing.ts";

Deno.test("the card has the recipe with relative paths, and all digests", async () => {
  const run = await Preparing.of({ "in/a.jsonl": [{ prompt: "a" }, { prompt: "a" }] }, {
    name: "one",
    inputs: [{ path: "DIR/in", name: "source" }],
  });
  await run.done();
  const { recipe, inputs, splits, name } = await run.card();
  strictEqual(name, "one");
  const { output, inputs: sources } = recipe as { output: string; inputs: { path: string }[] };
  deepStrictEqual([output, sources[0]!.path], [".", "../in"]);
  strictEqual(JSON.stringify(recipe).includes(run.dir), false);
  const digests = await run.digests();
  deepStrictEqual(splits.map(({ file, sha256 }) => [file, sha256]), [
    ["train.parquet", digests["train.parquet"]],
  ]);
  strictEqual(inputs[0]!.bytes, 30);
  const page = await Deno.readTextFile(`${run.out}/README.md`);
  match(page, /^---\nconfigs:\n- config_name: default\n {2}data_files:\n {2}- split: train\n/);
  match(page, /\| a\.jsonl \| 2 \| 1 \| 1 \|/);
});

Deno.test("of each input and reason the card names the first three rows", async () => {
  const rows = Array.from({ length: 20 }, (_, i) => ({ prompt: i % 4 === 0 ? "same" : `${i}` }));
  const run = await Preparing.of({ "a.jsonl": rows, "b.jsonl": rows }, {
    inputs: [{ path: "DIR/a.jsonl" }, { path: "DIR/b.jsonl" }],
  });
  await run.done();
  const { dropped_rows, rows: counts } = await run.card();
  deepStrictEqual(counts.dropped, { duplicate: 24 });
  deepStrictEqual(
    dropped_rows.map(({ file, row }) => `${file}:${row}`),
    "a.jsonl:5 a.jsonl:9 a.jsonl:13 b.jsonl:1 b.jsonl:2 b.jsonl:3".split(" "),
  );
});
