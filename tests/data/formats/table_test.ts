import { deepStrictEqual } from "node:assert/strict";
import { formatOf, FORMATS, knownEndings } from "../../../data/formats/table.ts";
import { SourceConfig } from "../../../data/mod.ts";

const of = (path: string) => {
  const { format, compression } = formatOf(path);
  return [format?.name ?? null, compression];
};

Deno.test("formatOf() knows a file by its name, in any case, also if it is compressed", () => {
  deepStrictEqual(of("a/rows.jsonl"), ["json_lines", null]);
  deepStrictEqual(of("ROWS.NDJSON.GZ"), ["json_lines", "gzip"]);
  deepStrictEqual(of("rows.csv.zst"), ["csv", "zstd"]);
  deepStrictEqual(of("train-00000-of-00002.parquet"), ["parquet", null]);
  deepStrictEqual(of("data-00000-of-00002.arrow"), ["arrow", null]);
});

Deno.test("formatOf() knows no other name, and no Parquet in an archive", () => {
  deepStrictEqual(of("rows.xlsx"), [null, null]);
  deepStrictEqual(of("rows.parquet.gz"), [null, "gzip"]);
  deepStrictEqual(of("jsonl"), [null, null]);
});

Deno.test("every format can be named in a source, and errors list its endings", () => {
  const named = FORMATS.map(({ name }) =>
    SourceConfig.parse({ path: "x", format: name }).format as string
  );
  deepStrictEqual(named, ["json_lines", "csv", "parquet", "arrow"]);
  const all = FORMATS.flatMap(({ endings }) => endings);
  deepStrictEqual(all.filter((ending) => !knownEndings().includes(ending)), []);
});
