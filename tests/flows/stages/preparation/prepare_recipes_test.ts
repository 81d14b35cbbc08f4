/** The recipes of `configs/prepare`, on files of the shapes that their sources have. */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { parse } from "yaml";
import { loadConfig, namedFiles, type PrepareConfig } from "../../../../configs/mod.ts";
import {
  isPreference,
  loadRows,
  type NamedColumn,
  ParquetRows,
  type Row,
  typeOf,
  unified,
} from "../../../../data/mod.ts";
import { validate } from "../../../configs/shipped.ts";
import { scratch } from "../../fixtures.ts";
import { Preparing, writeFiles } from "./preparing.ts";

const ROOM = decodeURIComponent(new URL("../../../../configs/prepare/", import.meta.url).pathname);
const DATASETS = decodeURIComponent(new URL("../../../../datasets", import.meta.url).pathname);

async function parquet(rows: Record<string, unknown>[]): Promise<Uint8Array> {
  const path = await Deno.makeTempFile();
  const type = rows.map((row) => typeOf(row)).reduce((a, b) => unified(a, b));
  const fields = Object.entries((type as { fields: Record<string, NamedColumn["type"]> }).fields);
  using file = await Deno.open(path, { write: true });
  const writer = new ParquetRows(file, fields.map(([name, type]) => ({ name, type })));
  for (const row of rows) await writer.add(row, 1);
  await writer.finish();
  const bytes = await Deno.readFile(path);
  await Deno.remove(path);
  return bytes;
}

async function gzip(rows: object[]): Promise<Uint8Array> {
  const text = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

type Files = Parameters<typeof writeFiles>[1];
type Prepared = { card: Awaited<ReturnType<Preparing["card"]>>; rows: Row[] };

/** A recipe's output from files of `datasets/`, with all rows in one split. */
async function prepared(name: string, files: Files): Promise<Prepared> {
  const dir = await scratch();
  await writeFiles(dir, files);
  const { config } = await loadConfig(`${ROOM}${name}.yaml`, { files_missing: true });
  const here = JSON.parse(JSON.stringify(config).replaceAll(DATASETS, dir)) as PrepareConfig;
  const run = await Preparing.from(dir, { ...here, splits: { train: 1 } });
  await run.done();
  const path = `${run.out}/train.parquet`;
  const needs = config.flow === "prepare" && config.needs === "preference"
    ? "preference"
    : undefined;
  const table = await loadRows([{ path }], { home: dir, needs });
  const rows = await table.rows(Array.from({ length: table.size }, (_, i) => i));
  return { card: await run.card(), rows };
}

const NAMES = [...Deno.readDirSync(ROOM)].map(({ name }) => name).toSorted();

Deno.test("each recipe ships with its schema line, its source and its command", async () => {
  deepStrictEqual(NAMES, [
    "asdiv.yaml",
    "deepscaler.yaml",
    "gsm8k.yaml",
    "hh_rlhf.yaml",
    "math.yaml",
    "mm_math.yaml",
  ]);
  for (const name of NAMES) {
    const text = await Deno.readTextFile(`${ROOM}${name}`);
    strictEqual(text.split("\n")[0], "# yaml-language-server: $schema=../holdfast.schema.json");
    ok(/^# Source: .*(hub|hendrycks)/m.test(text), name);
    ok(text.includes(`\n# Run it:  deno task rl data prepare configs/prepare/${name}`), name);
    ok(validate(parse(text)), JSON.stringify(validate.errors));
    const { config } = await loadConfig(`${ROOM}${name}`, { files_missing: true });
    for (const file of namedFiles(config)) match(file.text, /\/datasets\//);
  }
});

const question = (n: number) =>
  `A farm has ${n} fields with ${n + 1} cows on each of them. How many cows does the farm have?`;

Deno.test("gsm8k.yaml: N after #### is the answer; test problems are gone", async () => {
  const row = (n: number) => ({
    question: question(n),
    answer: `It has <<${n}>>\n#### ${n * n + n}`,
  });
  const { card, rows } = await prepared("gsm8k", {
    "gsm8k/train.jsonl": [row(2), row(3), row(2), row(9)],
    "gsm8k/test.jsonl": [row(9)],
  });
  deepStrictEqual(card.rows, { read: 4, written: 2, dropped: { contaminated: 1, duplicate: 1 } });
  const [{ prompt, answer, completion, row_id }] = rows as [Row];
  deepStrictEqual([answer, completion], ["6", row(2).answer]);
  deepStrictEqual(prompt, [{
    role: "user",
    content: `${question(2)}\nThink step by step. End with #### and the number.`,
  }]);
  match(row_id, /^gsm8k\/[0-9a-f]{20}$/);
});

Deno.test("asdiv.yaml: the number is the answer, without its unit; other answers are gone", async () => {
  const row = (n: number, answer: string) => ({
    body: `A farm has ${n} cows.`,
    question: "How many legs do they have?",
    solution_type: "Multiplication",
    answer,
    formula: `${n}*4=${4 * n}`,
  });
  const { card, rows } = await prepared("asdiv", {
    "asdiv.parquet": await parquet([
      row(2, "8 (legs)"),
      row(3, "3:12"),
      row(4, "16"),
      row(5, "20; 5"),
    ]),
  });
  deepStrictEqual(card.rows, { read: 4, written: 2, dropped: { mapped_to_nothing: 2 } });
  const [first, second] = rows as [Row, Row];
  deepStrictEqual([first.answer, second.answer], ["8", "16"]);
  strictEqual(first.prompt, "A farm has 2 cows. How many legs do they have?");
  strictEqual(first.columns?.solution_type, "Multiplication");
});

Deno.test("deepscaler.yaml: the solution stays beside the answer", async () => {
  const row = (n: number, solution: string) => ({ problem: question(n), answer: `${n}`, solution });
  const { card, rows } = await prepared("deepscaler", {
    "deepscaler/train.parquet": await parquet([row(2, "so 2"), row(3, ""), row(9, "")]),
    "aime24.jsonl": [{ problem: question(9), answer: "9" }],
    "math500.jsonl": [{ problem: "1+1", answer: "2" }],
  });
  deepStrictEqual(card.rows.dropped, { contaminated: 1 });
  deepStrictEqual(rows.map(({ answer, columns }) => [answer, columns.solution]), [
    ["2", "so 2"],
    ["3", ""],
  ]);
});

Deno.test("hh_rlhf.yaml: dialogues become messages; other pairs are counted", async () => {
  const start = "\n\nHuman: Hi\n\nAssistant: Hello\n\nHuman: Who are you?";
  const pair = (chosen: string, rejected: string) => ({ chosen, rejected });
  const rows = [
    pair(`${start}\n\nAssistant: A program.`, `${start}\n\nAssistant: Guess.`),
    pair(`${start}\n\nAssistant: Same.`, `${start}\n\nAssistant: Same.`),
    pair("no dialogue", `${start}\n\nAssistant: Yes.`),
  ];
  const found = await prepared("hh_rlhf", {
    "hh-rlhf/harmless-base/train.jsonl.gz": await gzip(rows),
    "hh-rlhf/helpful-base/train.jsonl.gz": await gzip(rows.slice(0, 1)),
    "hh-rlhf/harmless-base/test.jsonl.gz": await gzip([
      pair("\n\nHuman: a\n\nAssistant: b", "\n\nHuman: a\n\nAssistant: c"),
    ]),
  });
  deepStrictEqual(found.card.rows, {
    read: 5,
    written: 2,
    dropped: { duplicate: 1, mapped_to_nothing: 1, unreadable: 1 },
  });
  deepStrictEqual(found.card.splits.map(({ split, rows }) => [split, rows]), [
    ["test", 1],
    ["train", 1],
  ]);
  const [{ prompt, completion, rejected, columns }] = found.rows as [Row];
  deepStrictEqual([completion, rejected], ["A program.", "Guess."]);
  strictEqual((prompt as unknown[]).length, 3);
  ok(isPreference(columns));
});

Deno.test("math.yaml: the last \\boxed{} is the answer; level and type stay", async () => {
  const row = (n: number, solution: string) => ({
    problem: question(n),
    level: "Level 3",
    type: "Algebra",
    solution,
  });
  const { card, rows } = await prepared("math", {
    "math/algebra/train-00000-of-00001.parquet": await parquet([
      row(2, "We get $\\boxed{\\frac{1}{2}}$."),
      row(3, "We get a half."),
    ]),
    "math500.jsonl": [{ problem: "1+1", answer: "2" }],
  });
  deepStrictEqual(card.rows.dropped, { mapped_to_nothing: 1 });
  deepStrictEqual(rows.map(({ answer, columns }) => [answer, columns.level, columns.type]), [
    ["\\frac{1}{2}", "Level 3", "Algebra"],
  ]);
});

Deno.test("mm_math.yaml: the image stays byte by byte beside its problem", async () => {
  const image = { bytes: { base64: "iVBORw0KGgo=" }, path: "1.png" };
  const { rows } = await prepared("mm_math", {
    "mm_math/train.parquet": await parquet([{
      image,
      question: "As the picture shows, how long is AB?",
      solution: "AB is \\boxed{3}",
      year: "eight",
      difficult: "medium",
      knowledge: [{ name: "triangles" }],
    }]),
  });
  const [{ answer, columns }] = rows as [Row];
  deepStrictEqual([answer, columns.image, columns.knowledge], ["3", image, [{
    name: "triangles",
  }]]);
});
