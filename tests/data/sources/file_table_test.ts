import { deepStrictEqual, rejects } from "node:assert/strict";
import fc from "fast-check";
import { FileTable, stateOf } from "../../../data/sources/file_table.ts";
import { lineBlocks, linesIn } from "../../../data/sources/json_lines.ts";
import { RowIndexWriter } from "../../../data/rows/row_index.ts";
import { rowHome } from "../row_home.ts";

const home = await rowHome();
const SIZE = 500;
const widthOf = (n: number) => (n % 50 === 0 ? 20_000 : n % 7);
const [path, index] = [`${home}/rows.jsonl`, `${home}/rows.index`];
const text = Array.from({ length: SIZE }, (_, n) => `{"n":${n},"x":"${"é".repeat(widthOf(n))}"}\n`);

async function table() {
  await Deno.writeTextFile(path, text.join(""));
  const writer = new RowIndexWriter(index);
  for await (const block of lineBlocks(path)) {
    for (const { start, length } of linesIn(block)) writer.add({ file: 0, start, length });
  }
  writer.finish({ key: "k", digest: "d", files: [] });
  const read = (columns: Record<string, unknown>) => ({
    row_id: String(columns.n),
    prompt: String(columns.x),
    columns,
  });
  const counts = "line" as const;
  const files = [{ named: "rows.jsonl", path, counts, seen: await stateOf(path), read }];
  return new FileTable({ size: SIZE, digest: "d", index, files });
}

Deno.test("FileTable reads any rows in any order", async () => {
  const rows = await table();
  const places = fc.array(fc.nat(SIZE - 1), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(places, async (some) => {
      const read = await rows.rows(some);
      deepStrictEqual(read.map(({ row_id }) => row_id), some.map(String));
      deepStrictEqual(read.map(({ prompt }) => prompt.length), some.map(widthOf));
    }),
    { numRuns: 40, seed: 4 },
  );
  await rejects(rows.rows([SIZE]), /Cannot read row 500 because the table has 500 rows/);
});

Deno.test("FileTable refuses a file that has changed, and a lost index", async () => {
  const rows = await table();
  await Deno.writeTextFile(path, text.toReversed().join(""));
  await Deno.utime(path, 1, 1);
  await rejects(
    rows.rows([0]),
    /^DataError: rows\.jsonl: the file has changed since it was opened/,
  );
  const other = await table();
  await Deno.remove(index);
  await rejects(
    other.rows([0]),
    /rows\.index: Cannot read the index of rows: .* when the run resum/,
  );
});
