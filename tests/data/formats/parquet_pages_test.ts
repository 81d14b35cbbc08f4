import { deepStrictEqual, rejects } from "node:assert/strict";
import type { FileMetaData, RowGroup } from "hyparquet";
import { rowsOfGroup } from "../../../data/formats/parquet_pages.ts";

/** A column of lists of whole numbers, as old writers have it: rows continue on the next page. */
const SCHEMA = [
  { name: "schema", num_children: 1 },
  { name: "a", repetition_type: "OPTIONAL", converted_type: "LIST", num_children: 1 },
  { name: "list", repetition_type: "REPEATED", num_children: 1 },
  { name: "element", repetition_type: "REQUIRED", type: "INT32" },
];
/** A value's repetition level and definition level, and the value. */
type Leveled = [repetition: number, definition: number, value?: number];
const DEFINED = 2;

const varint = (n: number): number[] => n < 128 ? [n] : [n % 128 + 128, ...varint(n >> 7)];
const int = (n: number): number[] => varint(2 * n);

/** Runs of one value each, behind their length. */
function levels(all: number[]): number[] {
  const runs = all.flatMap((level) => [2, level]);
  return [runs.length % 256, runs.length >> 8, 0, 0, ...runs];
}

/** A page of data of the first version, without compression, with its header in Thrift. */
function page(values: Leveled[]): number[] {
  const held = values.flatMap(([, definition, value]) =>
    definition === DEFINED ? [value!, 0, 0, 0] : []
  );
  const body = [
    ...levels(values.map(([repetition]) => repetition)),
    ...levels(values.map(([, definition]) => definition)),
    ...held,
  ];
  const data = [0x15, ...int(values.length), 0x15, ...int(0), 0x15, ...int(3), 0x15, ...int(3), 0];
  const size = int(body.length);
  return [0x15, ...int(0), 0x15, ...size, 0x15, ...size, 0x2c, ...data, 0, ...body];
}

async function lists(pages: Leveled[][], rows: number): Promise<unknown[]> {
  const bytes = new Uint8Array(pages.flatMap(page));
  const meta_data = {
    path_in_schema: ["a", "list", "element"],
    type: "INT32",
    codec: "UNCOMPRESSED",
    data_page_offset: 0n,
    total_compressed_size: BigInt(bytes.length),
  };
  const group = { num_rows: BigInt(rows), columns: [{ meta_data }] } as unknown as RowGroup;
  const metadata = { schema: SCHEMA, row_groups: [group] } as unknown as FileMetaData;
  const file = {
    byteLength: bytes.length,
    slice: (from: number, to?: number) => bytes.slice(from, to).buffer,
  };
  const source = { file, metadata, compressors: {} };
  return (await Array.fromAsync(rowsOfGroup(source, group))).flat().map(({ a }) => a);
}

Deno.test("rowsOfGroup() joins a row that continues on the next pages", async () => {
  const pages: Leveled[][] = [
    [[0, DEFINED, 1], [1, DEFINED, 2]],
    [[1, DEFINED, 3]],
    [[1, DEFINED, 4], [0, DEFINED, 5], [0, 1]],
    [[0, DEFINED, 6]],
  ];
  deepStrictEqual(await lists(pages, 4), [[1, 2, 3, 4], [5], [], [6]]);
  deepStrictEqual(await lists([pages.flat()], 4), [[1, 2, 3, 4], [5], [], [6]]);
});

Deno.test("rowsOfGroup() joins a row of more values than are decoded together", async () => {
  const one = Array.from({ length: 1000 }, (_, i): Leveled => [i === 0 ? 0 : 1, DEFINED, i % 256]);
  deepStrictEqual(await lists([one, [[0, DEFINED, 7]]], 2), [one.map(([, , value]) => value), [7]]);
});

Deno.test("rowsOfGroup() refuses a column that ends early", async () => {
  await rejects(lists([[[0, DEFINED, 1]]], 2), {
    name: "RangeError",
    message: "a column ends at row 1 of 2 of its group",
  });
});
