import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { type FileRow, fileRows } from "../../../data/sources/file_rows.ts";
import { sourceFiles } from "../../../data/sources/source_files.ts";

async function rowsOf(name: string, content: string): Promise<FileRow[]> {
  const dir = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${dir}/${name}`, content);
    const [file] = await sourceFiles({ path: `${dir}/${name}` });
    return await Array.fromAsync(fileRows(file!));
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("fileRows() hands out a broken line with its place, and reads on", async () => {
  const rows = await rowsOf("a.jsonl", '{"a":1}\n\n{broken\n[1]\n{"a":2}\n');
  deepStrictEqual(rows.map(({ place }) => place.line), [1, 3, 4, 5]);
  deepStrictEqual(rows.map((row) => "columns" in row ? row.columns : null), [
    { a: 1 },
    null,
    null,
    { a: 2 },
  ]);
  const broken = rows[1]!;
  match("problem" in broken ? broken.problem.message : "", /a\.jsonl:3: the line is not JSON/);
});

Deno.test("fileRows() counts rows of formats without lines, and ends at damage", async () => {
  const rows = await rowsOf("a.csv", "a,b\n1,2\n3,4\n");
  deepStrictEqual(rows.map((row) => [row.place.row, "columns" in row && row.columns.a]), [
    [1, "1"],
    [2, "3"],
  ]);
  await rejects(rowsOf("b.csv", "a,b\n1,2\n1\n"), /the file is not CSV/);
  strictEqual((await rowsOf("empty.jsonl", "")).length, 0);
});
