import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { parquetMetadataAsync } from "hyparquet";
import { loadRows } from "../../../data/mod.ts";
import { parquet } from "../../../data/formats/parquet.ts";
import { readJsonLines } from "../../../data/sources/json_lines.ts";
import { ensureTrl } from "../../environments.ts";
import { rowHome } from "../row_home.ts";

const CODECS = ["snappy", "gzip", "brotli", "zstd", "lz4", "none"];
const ROWS = 30;
const GROUP_ROWS = 12;

const home = await rowHome();

/** Files that pyarrow writes, in three row groups. */
async function written(): Promise<string> {
  const script = new URL("write_parquet.py", import.meta.url).pathname;
  const { code, stderr } = await new Deno.Command(await ensureTrl(), {
    args: [script, home, String(ROWS), String(GROUP_ROWS)],
  }).output();
  strictEqual(code, 0, new TextDecoder().decode(stderr));
  return home;
}

const dir = await written();
const none = () => ReadableStream.from([]);
const rowsOf = async (path: string) =>
  (await Array.fromAsync(parquet.rows!({ path, named: path, bytes: none }))).flat();
const expected = async () =>
  (await Array.fromAsync(readJsonLines(`${dir}/rows.jsonl`))).map(({ value }) => value);

for (const codec of CODECS) {
  Deno.test(`parquet reads what pyarrow wrote with ${codec}, in 3 row groups`, async () => {
    const path = `${dir}/${codec}.parquet`;
    const bytes = (await Deno.readFile(path)).buffer as ArrayBuffer;
    strictEqual((await parquetMetadataAsync(bytes)).row_groups.length, 3);
    deepStrictEqual(await rowsOf(path), await expected());
  });
}

for (const pages of ["few", "few_v2", "few_plain", "few_indexed", "delta", "statistics"]) {
  Deno.test(`parquet reads pages as pyarrow writes them: ${pages}`, async () => {
    deepStrictEqual(await rowsOf(`${dir}/${pages}.parquet`), await expected());
  });
}

Deno.test("parquet's rows of verl: messages, ground truth, and the index as id", async () => {
  const table = await loadRows([{ path: `${dir}/zstd.parquet` }], { home: `${dir}/home` });
  strictEqual(table.size, ROWS);
  const [last, first] = await table.rows([29, 0]);
  deepStrictEqual([last!.row_id, last!.answer, first!.row_id], ["29", "30", "0"]);
  deepStrictEqual(first!.prompt, [{ role: "user", content: 'What is 0 + 1, "é"?\n' }]);
  deepStrictEqual(table.files[0]!.shapes, [{
    name: "verl",
    rows: ROWS,
    fields: [
      "prompt",
      "reward_model.ground_truth",
      "data_source",
      "extra_info.index",
    ],
  }]);
});

Deno.test("parquet refuses a file that is none, and one that is cut off", async () => {
  const path = `${dir}/broken.parquet`;
  const whole = await Deno.readFile(`${dir}/snappy.parquet`);
  const text = new TextEncoder().encode('{"prompt":"a"}\n');
  for (const bytes of [text, whole.subarray(0, -9), new Uint8Array()]) {
    await Deno.writeFile(path, bytes);
    await rejects(rowsOf(path), (error: Error) => {
      match(error.message, /broken\.parquet: the file is no Parquet, or it is cut off \(/);
      return true;
    });
  }
});

Deno.test("parquet names the rows that damage makes unreadable", async () => {
  const path = `${dir}/damaged.parquet`;
  const bytes = await Deno.readFile(`${dir}/gzip.parquet`);
  const { row_groups } = await parquetMetadataAsync(bytes.slice().buffer);
  const page = row_groups[1]!.columns[0]!.meta_data!;
  const from = Number(page.dictionary_page_offset ?? page.data_page_offset);
  bytes.fill(0xff, from, from + Number(page.total_compressed_size));
  await Deno.writeFile(path, bytes);
  await rejects(rowsOf(path), (error: Error) => {
    match(error.message, /damaged\.parquet row 13: the rows from this one to row 24 cannot be/);
    return true;
  });
});

Deno.test("parquet's row is refused by its number: an image in place of text", async () => {
  const text = await Deno.readTextFile(`${dir}/rows.jsonl`);
  ok(text.includes("base64"));
  const source = { path: `${dir}/none.parquet`, fields: { prompt: "raw" } };
  await rejects(loadRows([source], { home: `${dir}/home` }), (error: Error) => {
    match(error.message, /none\.parquet row 1 raw: expected text or .*, got an image \(only text/);
    return true;
  });
  const missing = { path: `${dir}/none.parquet`, fields: { prompt: "quesiton" } };
  await rejects(loadRows([missing], { home: `${dir}/home` }), (error: Error) => {
    match(error.message, /none\.parquet row 1 quesiton: the row has no 'quesiton' \(it has 'data_/);
    return true;
  });
});

Deno.test("parquet's text that is not UTF-8 is refused by its row and field", async () => {
  const source = { path: `${dir}/latin1.parquet` };
  await rejects(loadRows([source], { home: `${dir}/home` }), (error: Error) => {
    match(error.message, /latin1\.parquet row 2 note: the text has bytes that are not UTF-8/);
    return true;
  });
});

Deno.test("parquet keeps the digits of decimals", async () => {
  const rows = await rowsOf(`${dir}/decimals.parquet`);
  deepStrictEqual(rows.map(({ exact }) => exact), [1.5, -0.1, "12345678901234567890.125"]);
});
