/** What `datasets` has really written is in `saved/`: `write_saved.py` makes it. */
import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { loadRows, sourceFiles, type SourceInput } from "../../../data/mod.ts";
import { fileRows } from "../../../data/sources/file_rows.ts";
import { firstColumns } from "../../../data/sources/first_columns.ts";
import { copyTree } from "../../copy_tree.ts";
import { rowHome } from "../row_home.ts";

const SAVED = fileURLToPath(new URL("saved", import.meta.url));
const home = await rowHome();

const names = async (path: string, format?: SourceInput["format"]) =>
  (await sourceFiles({ path, format })).map((file) => file.path.slice(SAVED.length + 1));
const columnsOf = async (path: string) => {
  const rows = [];
  for (const file of await sourceFiles({ path })) {
    for await (const row of fileRows(file)) {
      if ("problem" in row) throw row.problem;
      rows.push(row.columns);
    }
  }
  return rows;
};
const refused = (path: string, says: RegExp) =>
  rejects(sourceFiles({ path }), (error: Error) => {
    match(error.message, says);
    return true;
  });

for (const name of ["shards", "picked", "json"]) {
  Deno.test(`a saved data set has the rows of its Parquet, in their order: ${name}`, async () => {
    const rows = await columnsOf(`${SAVED}/${name}`);
    strictEqual(rows.length, name === "shards" ? 5 : 3);
    deepStrictEqual(rows, await columnsOf(`${SAVED}/${name}.parquet`));
  });
}

Deno.test("a saved data set keeps labels as numbers, digits of calls, and images as bytes", async () => {
  const [, second] = await columnsOf(`${SAVED}/shards/`);
  const called = (n: number) => ({
    function: { name: "f1", arguments: { city: "é", days: `115292150460684697${6 + n}` } },
  });
  deepStrictEqual(second, {
    id: "row1",
    prompt: [
      { role: "user", content: "é", tool_calls: null },
      { role: "assistant", content: null, tool_calls: [called(1)] },
    ],
    label: 1,
    image: { bytes: { base64: "UE5H" }, path: null },
    nothing: null,
  });
  const [first] = await columnsOf(`${SAVED}/json`);
  deepStrictEqual(first!.calls, { n: "1152921504606846976", x: [1, "one"] });
});

Deno.test("loadRows() of a saved data set counts its shards, and finds its rows again", async () => {
  const source = { path: `${SAVED}/shards` };
  for (const _ of ["first", "again"]) {
    const table = await loadRows([source], { home });
    deepStrictEqual(table.files.map(({ format, rows }) => [format, rows]), [
      ["arrow", 2],
      ["arrow", 2],
      ["arrow", 1],
    ]);
    const rows = await table.rows([4, 0]);
    deepStrictEqual(rows.map(({ row_id }) => row_id), ["row4", "row0"]);
  }
  const whole = await loadRows([{ path: `${SAVED}/shards.parquet` }], { home });
  const saved = await loadRows([source], { home });
  deepStrictEqual(await saved.rows([0, 1, 2, 3, 4]), await whole.rows([0, 1, 2, 3, 4]));
});

Deno.test("a row of a saved data set is refused by its shard and number", async () => {
  const source = { path: `${SAVED}/shards`, fields: { prompt: "image" } };
  await rejects(loadRows([source], { home }), (error: Error) => {
    match(
      error.message,
      /data-00000-of-00003\.arrow row 1 image: expected text or .*, got an image/,
    );
    return true;
  });
});

Deno.test("savedFiles() are the only split, or the one that is named", async () => {
  deepStrictEqual(await names(`${SAVED}/one_split`), [
    "one_split/train/data-00000-of-00001.arrow",
  ]);
  deepStrictEqual(await names(`${SAVED}/splits/test`), ["splits/test/data-00000-of-00001.arrow"]);
  deepStrictEqual(await firstColumns({ path: `${SAVED}/one_split` }), {
    id: "row0",
    prompt: "p0",
  });
  await refused(
    `${SAVED}/splits`,
    /splits: it has 2 splits \(train, test\); name one, as .*\/splits\/train$/,
  );
});

Deno.test("savedFiles() are in the order of state.json, whatever their names", async () => {
  const dir = await Deno.makeTempDir({ dir: home });
  await copyTree(`${SAVED}/shards/`, `${dir}/`);
  const wanted = [2, 0].map((shard) => `data-0000${shard}-of-00003.arrow`);
  const state = { _data_files: wanted.map((filename) => ({ filename })) };
  await Deno.writeTextFile(`${dir}/state.json`, JSON.stringify(state));
  const found = await sourceFiles({ path: dir });
  deepStrictEqual(found.map(({ path }) => path), wanted.map((name) => `${dir}/${name}`));
});

Deno.test("savedFiles() of an empty data set says so", async () => {
  await refused(`${SAVED}/empty`, /empty: the saved data set has no rows$/);
});

Deno.test("a saved data set is not read as a different format", async () => {
  await rejects(names(`${SAVED}/shards`, "parquet"), (error: Error) => {
    match(error.message, /shards: the directory has no data file/);
    return true;
  });
});

const broken: [string, (dir: string) => Promise<void>, RegExp][] = [
  [
    "a missing shard",
    (dir) => Deno.remove(`${dir}/data-00001-of-00003.arrow`),
    /data-00001-of-00003\.arrow: the file is missing, and state\.json names it; copy/,
  ],
  [
    "no dataset_info.json",
    (dir) => Deno.remove(`${dir}/dataset_info.json`),
    /dataset_info\.json: the file is missing, which `datasets\.save_to_disk` writes/,
  ],
  [
    "a torn state.json",
    (dir) => Deno.writeTextFile(`${dir}/state.json`, '{"_data_files": ['),
    /state\.json: it is not as `datasets\.save_to_disk` writes it \(it is not JSON: .*\); copy/,
  ],
  [
    "no list of files",
    (dir) => Deno.writeTextFile(`${dir}/state.json`, "{}"),
    /state\.json: it is not as .* \(_data_files Invalid input: expected array, received undefined/,
  ],
  [
    "a file outside",
    (dir) => Deno.writeTextFile(`${dir}/state.json`, '{"_data_files":[{"filename":"../x.arrow"}]}'),
    /state\.json: .* \(_data_files 0 filename expected the name of one file or directory\)/,
  ],
  [
    "a list as dataset_info.json",
    (dir) => Deno.writeTextFile(`${dir}/dataset_info.json`, "[]"),
    /dataset_info\.json: it is not as .* \(Invalid input: expected object, received array\)/,
  ],
  [
    "indices, as of `datasets` 1.1",
    (dir) =>
      Deno.writeTextFile(
        `${dir}/state.json`,
        JSON.stringify({
          _data_files: [{ filename: "data-00000-of-00003.arrow" }],
          _indices_data_files: [{ filename: "indices.arrow" }],
        }),
      ),
    /its rows are a selection that an old version of `datasets` saved .*flatten_indices\(\)/,
  ],
];
for (const [what, change, says] of broken) {
  Deno.test(`savedFiles() says what is wrong: ${what}`, async () => {
    const dir = await Deno.makeTempDir({ dir: home });
    await copyTree(`${SAVED}/shards/`, `${dir}/`);
    await change(dir);
    await refused(dir, says);
  });
}
