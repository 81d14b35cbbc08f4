import { deepStrictEqual, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { ColumnType, typeOf, unified } from "../../../data/preparation/column_type.ts";
import { parquet as format } from "../../../data/formats/parquet.ts";
import { ParquetRows } from "../../../data/preparation/parquet_rows.ts";
import { sha256Hex } from "../../../engine/mod.ts";

type Columns = Record<string, unknown>;
const dir = await Deno.makeTempDir({ prefix: "parquet_rows_" });
Deno.test.afterAll(() => Deno.remove(dir, { recursive: true }));

/** What our own reader gets from a file. */
async function readBack(path: string): Promise<Columns[]> {
  const bytes = () => {
    throw new Error("Parquet is read by places");
  };
  return (await Array.fromAsync(format.rows!({ path, named: path, bytes }))).flat();
}

async function written(rows: Columns[]) {
  const type = rows.map((row) => typeOf(row)).reduce((a, b) => unified(a, b));
  const fields = Object.entries((type as Extract<ColumnType, { is: "struct" }>).fields);
  const path = `${dir}/${crypto.randomUUID()}.parquet`;
  using file = await Deno.open(path, { write: true, createNew: true });
  const parquet = new ParquetRows(file, fields.map(([name, type]) => ({ name, type })));
  for (const row of rows) await parquet.add(row, JSON.stringify(row).length);
  return { path, ...await parquet.finish() };
}

Deno.test("ParquetRows writes what a reader gets back: nested, bytes, nulls", async () => {
  const rows = [
    {
      m: [{ role: "user", content: "é" }],
      i: 3,
      x: 0.5,
      b: { bytes: { base64: "AAEC" }, path: "p" },
    },
    { m: [], i: -(2 ** 53) + 1, x: 2, b: null },
    { m: null, i: null, x: null, b: { bytes: null, path: null } },
  ];
  const { path, rows: count, bytes, sha256 } = await written(rows);
  deepStrictEqual(await readBack(path), rows);
  const file = await Deno.readFile(path);
  deepStrictEqual([count, bytes, sha256], [3, file.length, sha256Hex(file)]);
});

Deno.test("ParquetRows ends a row group after 10,000 rows or 16 MiB of text", async () => {
  const many = Array.from({ length: 20_001 }, (_, i) => ({ i }));
  const { parquetMetadataAsync } = await import("hyparquet");
  const groups = async (path: string) => {
    const { buffer } = await Deno.readFile(path);
    return (await parquetMetadataAsync(buffer)).row_groups.map(({ num_rows }) => Number(num_rows));
  };
  const { path } = await written(many);
  deepStrictEqual(await groups(path), [10_000, 10_000, 1]);
  const wide = Array.from({ length: 5 }, (_, i) => ({ text: `${i}`.repeat(6 * 1024 * 1024) }));
  deepStrictEqual(await groups((await written(wide)).path), [3, 2]);
  deepStrictEqual(await readBack(path), many);
});

Deno.test("ParquetRows: any rows with one type per column come back", async () => {
  const leaf = fc.oneof(fc.string({ unit: "binary" }), fc.constant(null));
  const message = fc.record({ role: leaf, content: leaf }, { noNullPrototype: true });
  const row = fc.record({
    text: leaf,
    count: fc.oneof(fc.maxSafeInteger(), fc.constant(null)),
    list: fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { maxLength: 3 }),
    deep: fc.array(fc.array(message, { maxLength: 2 }), { maxLength: 2 }),
  }, { noNullPrototype: true });
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 6 }), async (rows) => {
      const { path } = await written(rows);
      deepStrictEqual(await readBack(path), rows);
    }),
    { numRuns: 30, seed: 2 },
  );
});

Deno.test("ParquetRows writes equal rows as equal bytes", async () => {
  const rows = Array.from({ length: 300 }, (_, i) => ({ i, text: `text ${i % 7}` }));
  strictEqual((await written(rows)).sha256, (await written(rows)).sha256);
});
