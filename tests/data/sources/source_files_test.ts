import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { sourceFiles } from "../../../data/mod.ts";
import { bytesOf, isPattern } from "../../../data/sources/source_files.ts";
import { rowHome } from "../row_home.ts";

const dir = await rowHome();
await Deno.mkdir(`${dir}/many/deeper`, { recursive: true });
for (const name of ["empty", "hub", "json", "model", "saved"]) await Deno.mkdir(`${dir}/${name}`);
for (
  const name of [
    "many/b.jsonl",
    "many/a.csv",
    "many/B.jsonl.gz",
    "many/.hidden.jsonl",
    "many/notes.md",
    "many/deeper/c.jsonl",
    "saved/state.json",
    "saved/data-00000-of-00001.arrow",
    "empty/notes.md",
    "hub/dataset_info.json",
    "hub/train.parquet",
    "json/b.json",
    "json/a.json",
    "model/config.json",
    "model/model.safetensors",
    "rows.xlsx",
  ]
) await Deno.writeTextFile(`${dir}/${name}`, "PK");
await Deno.writeTextFile(`${dir}/old_name.txt`, `\n {"prompt":"a"}\n`);

const names = async (path: string, format?: "csv") =>
  (await sourceFiles({ path, format })).map((file) => file.path.slice(dir.length + 1));
const refused = (path: string, says: RegExp) =>
  rejects(sourceFiles({ path }), (error: Error) => {
    match(error.message, says);
    return true;
  });

Deno.test("sourceFiles() of a directory are its data files, sorted by name", async () => {
  deepStrictEqual(await names(`${dir}/many`), ["many/B.jsonl.gz", "many/a.csv", "many/b.jsonl"]);
  deepStrictEqual(await names(`${dir}/many/`, "csv"), ["many/a.csv"]);
  deepStrictEqual(await names(`${dir}/json`), ["json/a.json", "json/b.json"]);
  deepStrictEqual(await names(`${dir}/hub`), ["hub/train.parquet"]);
});

Deno.test("sourceFiles() of a pattern are all files that it matches, sorted", async () => {
  deepStrictEqual(await names(`${dir}/many/*.jsonl*`), ["many/B.jsonl.gz", "many/b.jsonl"]);
  deepStrictEqual(await names(`${dir}/many/**/*.jsonl`), ["many/b.jsonl", "many/deeper/c.jsonl"]);
});

Deno.test("sourceFiles() prefers a file to the pattern that its name could be", async () => {
  const path = `${dir}/rows[1].jsonl`;
  await Deno.writeTextFile(path, "{}\n");
  deepStrictEqual(await names(path), ["rows[1].jsonl"]);
  strictEqual(isPattern(path), true);
});

Deno.test("sourceFiles() reads any file that starts with an object as JSON lines", async () => {
  const [file] = await sourceFiles({ path: `${dir}/old_name.txt` });
  strictEqual(file!.format.name, "json_lines");
});

Deno.test("sourceFiles() says what is wrong with a place that has no rows", async () => {
  await refused(`${dir}/none.jsonl`, /none\.jsonl: Cannot read it: there is no such file$/);
  await refused(`${dir}/empty`, /empty: the directory has no data file \(1 files\); names of data/);
  await refused(`${dir}/*.parquet`, /\*\.parquet: the pattern matches no file; correct it/);
  await refused(`${dir}/rows.xlsx`, /rows\.xlsx: its name says no known format; rename it/);
  await refused(`${dir}/model`, /model: it is a model's directory; name a file or a directory/);
  await refused(`${dir}/saved`, /saved\/dataset_info\.json: the file is missing, which `datasets/);
});

const text = new TextEncoder().encode(`{"prompt":"${"é".repeat(100_000)}"}\n`);
const unpacked = async (path: string) => {
  const [file] = await sourceFiles({ path });
  return new Uint8Array(
    await new Blob(await Array.fromAsync(bytesOf(file!)) as BlobPart[]).arrayBuffer(),
  );
};
const packed: [string, (bytes: Uint8Array) => Uint8Array][] = [
  ["gz", (bytes) => gzipSync(bytes)],
  ["zst", (bytes) => zstdCompressSync(bytes)],
];
for (const [ending, compress] of packed) {
  Deno.test(`bytesOf() decompresses .${ending} of several parts, and no torn one`, async () => {
    const path = `${dir}/rows.jsonl.${ending}`;
    const parts = [compress(text.slice(0, 1000)), compress(text.slice(1000))];
    await Deno.writeFile(path, new Uint8Array([...parts[0]!, ...parts[1]!]));
    deepStrictEqual(await unpacked(path), text);
    for (const torn of [compress(text).subarray(0, -5), text]) {
      await Deno.writeFile(path, torn);
      await rejects(unpacked(path), (error: Error) => {
        match(
          error.message,
          /: the file cannot be decompressed as (gzip|zstd) \(.*\); it is damag/,
        );
        return true;
      });
    }
  });
}
