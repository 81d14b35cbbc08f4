import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ArtifactStore } from "../../../engine/mod.ts";
import {
  asSourceFile,
  Drops,
  errorAt,
  linesOfRows,
  placesIn,
  placesKept,
  rowsOfPart,
  stemOf,
} from "../../../flows/files/prepared_part.ts";
import { scratch } from "../fixtures.ts";

Deno.test("rows of a part come back with their places and lengths", async () => {
  const artifacts = new ArtifactStore(await scratch());
  const rows = ["a\nb", "é"].map((prompt, i) => ({ row_id: `${i}`, prompt, kept: {}, number: i }));
  const ref = await artifacts.put(linesOfRows(rows));
  const read = await Array.fromAsync(rowsOfPart({ rows: ref }, { artifacts }));
  deepStrictEqual(
    read,
    rows.map((row, place) => ({
      row,
      place,
      characters: JSON.stringify(row).length,
    })),
  );
});

Deno.test("places of rows are kept, and nothing for none", async () => {
  const artifacts = new ArtifactStore(await scratch());
  const { left_out } = await placesKept([1, 3], { artifacts });
  deepStrictEqual(await placesIn(left_out, { artifacts }), new Set([1, 3]));
  deepStrictEqual(await placesKept([], { artifacts }), {});
  deepStrictEqual(await placesIn(undefined, { artifacts }), new Set());
});

Deno.test("Drops counts every row, and names the first three of each reason", () => {
  const drops = new Drops();
  for (let row = 1; row <= 5; row++) {
    drops.add({ file: "f", row, reason: "too_long", because: "b" });
  }
  drops.add({ file: "f", row: 9, reason: "duplicate", because: "c" });
  deepStrictEqual(drops.counts, { too_long: 5, duplicate: 1 });
  deepStrictEqual(drops.named.map(({ row }) => row), [1, 2, 3, 9]);
});

Deno.test("stemOf() is a file's name without what says its format", () => {
  deepStrictEqual(
    ["/a/train.jsonl.gz", "b.parquet", "/c/d/", "v1.2.csv"].map(stemOf),
    "train b d v1.2".split(" "),
  );
});

Deno.test("errorAt() and asSourceFile() name a file as the card and as readers do", async () => {
  strictEqual(
    errorAt("is odd", "x.csv", { file: "/a/x.csv", row: 2 }).message,
    "x.csv row 2: is odd",
  );
  strictEqual(errorAt("is odd", "x", { file: "/a/x", line: 3 }).message, "x:3: is odd");
  const dir = await scratch();
  await Deno.writeTextFile(`${dir}/x.txt`, "a,b\n");
  const { format } = await asSourceFile({ path: `${dir}/x.txt` }, { format: "csv" });
  strictEqual(format.name, "csv");
});
