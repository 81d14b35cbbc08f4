import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { loadRows, type SourceInput } from "../../../data/mod.ts";
import { RowCache } from "../../../data/rows/row_cache.ts";
import { SourceConfig } from "../../../data/source_config.ts";
import { stateOf } from "../../../data/sources/file_table.ts";
import { indexRows } from "../../../data/sources/index_rows.ts";
import { sourceFiles } from "../../../data/sources/source_files.ts";
import { rowHome } from "../row_home.ts";

const home = await rowHome();
const open = (...sources: SourceInput[]) => loadRows(sources, { home });
const lines = (...rows: unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

async function file(name: string, text: string): Promise<string> {
  await Deno.mkdir(`${home}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
  await Deno.writeTextFile(`${home}/${name}`, text);
  return `${home}/${name}`;
}

const idsOf = async (table: Awaited<ReturnType<typeof open>>) =>
  (await table.rows([...Array(table.size).keys()])).map(({ row_id }) => row_id);

Deno.test("a file that is written while its rows are checked is refused, and no index of it kept", async () => {
  const path = await file("written.jsonl", lines({ id: 1, prompt: "a" }));
  const source = SourceConfig.parse({ path });
  const [found] = await sourceFiles(source);
  const read = { ...found!, seen: await stateOf(path), content: "before", source, number: 0 };
  const cache = new RowCache(home);
  await file("written.jsonl", lines({ id: 1, prompt: "a" }, { id: 2, prompt: "b" }));
  const problem = /written\.jsonl: the file was written while its rows were checked; try again/;
  await rejects(indexRows([read], { cache, key: "key" }), problem);
  await Deno.remove(path);
  await rejects(indexRows([read], { cache, key: "key" }), /written\.jsonl: .*no such file/);
  deepStrictEqual(
    [...Deno.readDirSync(cache.dir)].filter(({ name }) => /^key|\.new$/.test(name)),
    [],
  );
});

Deno.test("a directory's files are one table, and limit counts rows of all of them", async () => {
  await file("many/a.jsonl", lines({ id: 1, prompt: "a" }, { id: 2, prompt: "b" }));
  await file("many/b.csv", 'id,prompt\n3,"c\nc"\n4,d\n');
  const all = await open({ path: `${home}/many` });
  deepStrictEqual(await idsOf(all), ["1", "2", "3", "4"]);
  deepStrictEqual(all.files.map(({ format, rows }) => [format, rows]), [["json_lines", 2], [
    "csv",
    2,
  ]]);
  deepStrictEqual(await idsOf(await open({ path: `${home}/many/*`, limit: 3 })), ["1", "2", "3"]);
  const first = await open({ path: `${home}/many`, limit: 1 });
  deepStrictEqual(first.files.map(({ rows }) => rows), [1, 0]);
});

Deno.test("a limit unpacks no more of a file than it reads, and never the lines of another", async () => {
  const rows = Array.from({ length: 9000 }, (_, id) => `${id},${"p".repeat(20)}\n`).join("");
  const path = await file("long.csv", `id,prompt\n${rows}`);
  const unpacked = () =>
    [...Deno.readDirSync(`${home}/cache/rows`)].filter(({ name }) => name.endsWith(".jsonl"))
      .map(({ name }) => Deno.statSync(`${home}/cache/rows/${name}`).size);
  const before = new Set(unpacked());
  const [first, all] = [await open({ path, limit: 3 }), await open({ path })];
  const [part, whole] = unpacked().filter((size) => !before.has(size)).sort((a, b) => a - b);
  strictEqual(part! < whole! / 2, true);
  deepStrictEqual(await idsOf(first), ["0", "1", "2"]);
  deepStrictEqual((await all.rows([8999])).map(({ row_id }) => row_id), ["8999"]);
});

Deno.test("duplicates of every file are found: refused with both places, or skipped", async () => {
  const a = await file("twice/a.jsonl", lines({ id: 1, prompt: "a" }, { id: 2, prompt: "b" }));
  const b = await file("twice/b.csv", "id,prompt\n3,c\n2,d\n1,e\n");
  await rejects(open({ path: a }, { path: b }), (error: Error) => {
    match(error.message, /b\.csv row 2: the row id '2' already belongs to .*a\.jsonl:2; give each/);
    return true;
  });
  const kept = await open({ path: a }, { path: b, duplicates: "skip" });
  deepStrictEqual(await idsOf(kept), ["1", "2", "3"]);
  deepStrictEqual((await kept.rows([2])).map(({ prompt }) => prompt), ["c"]);
  // Only the source of the second row says what happens with it.
  await rejects(open({ path: a, duplicates: "skip" }, { path: b }), /already belongs to/);
});

Deno.test("a type that changes in a late row is named with its place", async () => {
  const many = Array.from({ length: 3000 }, (_, id) => ({ id, prompt: `p${id}` }));
  const late = await file("late.jsonl", lines(...many, { id: "x", prompt: { text: "p" } }));
  await rejects(open({ path: late }), /late\.jsonl:3001 prompt: expected text or .* got an object/);
  const rows = many.map(({ id, prompt }) => `${id},${prompt}\n`).join("");
  const csv = await file("late.csv", `id,prompt\n${rows}x,\n`);
  await rejects(
    open({ path: csv }),
    /late\.csv row 3001: the row has no 'prompt', 'messages' or 'question' \(it has 'id'\)/,
  );
});

Deno.test("an image among messages is named", async () => {
  const image = { type: "image_url", image_url: { url: "data:" } };
  const content = [{ type: "text", text: "What is this?" }, image];
  const path = await file("image.jsonl", lines({ messages: [{ role: "user", content }] }));
  await rejects(
    open({ path }),
    /image\.jsonl:1 messages\.0\.content: expected text, got a list with an image \(/,
  );
});

Deno.test("nothing is left in the cache of files that were refused", async () => {
  const path = await file("none.jsonl", lines({ prompt: "a" }, { prompt: 3 }));
  const names = () => [...Deno.readDirSync(`${home}/cache/rows`)].map(({ name }) => name).sort();
  const before = names();
  await rejects(open({ path }), /none\.jsonl:2/);
  deepStrictEqual(names(), before);
  strictEqual(before.some((name) => name.endsWith(".new")), false);
});

Deno.test("rows are repaired wherever they are read, and a repair that is for no row is refused", async () => {
  const path = await file("wrong.jsonl", lines({ id: 1, question: "1+1", answer: "3" }));
  const repairs = [{ where: { question: "1+1" }, set: { answer: "2" } }];
  for (let opened = 0; opened < 2; opened++) { // From the index the second time.
    const [row] = await (await open({ path, repairs })).rows([0]);
    deepStrictEqual([row!.answer, row!.columns.answer], ["2", "2"]);
  }
  const plain = await open({ path });
  strictEqual((await plain.rows([0]))[0]!.answer, "3");
  strictEqual((await open({ path, repairs })).digest === plain.digest, false);
  const more = [...repairs, { where: { question: "2+2" }, set: { answer: "4" } }];
  await rejects(open({ path, repairs: more }), /wrong\.jsonl.*`repairs\.1` is for no row/);
  await rejects(open({ path, repairs: "gsm8k" }), /none of its rows is one that `repairs: gsm8k`/);
  strictEqual((await open({ path, repairs: more, limit: 1 })).size, 1);
});

Deno.test("repairs of a source are counted over all of its files, and for it alone", async () => {
  await file("parts/a.jsonl", lines({ id: 1, question: "a", answer: "0" }));
  await file("parts/b.jsonl", lines({ id: 2, question: "b", answer: "0" }));
  const repairs = ["a", "b"].map((question) => ({ where: { question }, set: { answer: "1" } }));
  const both = await open({ path: `${home}/parts`, repairs });
  deepStrictEqual((await both.rows([0, 1])).map(({ answer }) => answer), ["1", "1"]);
  const apart = ["a", "b"].map((name) => ({
    path: `${home}/parts/${name}.jsonl`,
    repairs: name === "a" ? repairs : undefined,
  }));
  await rejects(open(...apart), /a\.jsonl.*`repairs\.1` is for no row/);
});
