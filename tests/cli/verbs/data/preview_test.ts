import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { endAll, json, rl, ROOT } from "../../fixtures.ts";
import { at, BAD, GOOD, home } from "../../data_home.ts";

Deno.test.afterAll(endAll);

Deno.test("data preview shows rows as a run reads them, and tells a broken one by file, line and field", async () => {
  const { rows, preview } = await json<
    { rows: number; preview: { row_id: string; prompt: string }[] }
  >(
    ["data", "preview", GOOD, "-n", "1", ...at],
  );
  deepStrictEqual([rows, preview.length, preview[0]!.prompt], [2, 1, "1+1"]);
  const bad = await rl(["data", "preview", BAD, ...at]);
  deepStrictEqual([bad.code, bad.out], [2, ""]);
  match(bad.err, /bad\.jsonl:2 prompt: expected text .* got number 3/);
});

Deno.test("data preview shows preferences as pairs, with the prompt that their sides share", async () => {
  const shown = await rl(["data", "preview", `${ROOT}examples/preferences.jsonl`, ...at]);
  strictEqual(shown.code, 0);
  const fields = shown.out.split("\n").filter((line) => /chosen|rejected|margin/.test(line)).map((
    line,
  ) => line.trim());
  const read = fields.filter((line) => !/^(columns|shape)/.test(line));
  deepStrictEqual(read.map((line) => line.replace(/ +/, " ")), [
    "chosen 12345",
    "rejected 12354",
    "chosen 01789",
    "rejected 0178",
    "margin 0.5",
    "chosen 1236",
    "rejected 6321",
  ]);
  match(shown.out, /prompt +\[\{"role":"user","content":"sort 6321"\}\]/);
});

Deno.test("data preview says each file's shape, and which fields tell it", async () => {
  const dir = `${home}/shapes`;
  await Deno.mkdir(dir);
  await Deno.writeTextFile(`${dir}/a.csv`, "question,answer\n1+1,2\n1+2,3\n");
  const verl = { data_source: "s", prompt: "1+3", reward_model: { ground_truth: "4" } };
  const feynrl = { prompt: [{ role: "user", content: "1+4" }], answer: "so 5", solution: "5" };
  const rows = [verl, feynrl].map((row) => `${JSON.stringify(row)}\n`).join("");
  await Deno.writeTextFile(`${dir}/b.jsonl`, rows);
  const { files } = await json<{ files: { path: string; shapes: { advice?: string }[] }[] }>(
    ["data", "preview", dir, ...at],
  );
  const advice = files[1]!.shapes[1]!.advice!;
  match(advice, /^In FeynRL's files .* set fields: \{ answer: solution, completion: answer \}$/);
  deepStrictEqual(files, [{
    path: `${dir}/a.csv`,
    format: "csv",
    rows: 2,
    shapes: [{ name: "question_answer", rows: 2, fields: ["question", "answer"] }],
  }, {
    path: `${dir}/b.jsonl`,
    format: "json_lines",
    rows: 2,
    shapes: [
      {
        name: "verl",
        rows: 1,
        fields: ["prompt", "reward_model.ground_truth", "data_source"],
      },
      { name: "feynrl", rows: 1, fields: ["prompt", "answer", "solution"], advice },
    ],
  }]);
  const { out } = await rl(["data", "preview", `${dir}/*`, ...at]);
  match(
    out,
    /a\.csv \(csv, 2 rows\)\n +shape +question_answer \(.*\), because of question, answer: 2 rows/,
  );
  ok(out.includes(`  advice      ${advice}\n`), out);
});

Deno.test("data preview of a configuration shows each split as its run reads it", async () => {
  const dir = await Deno.makeTempDir({ dir: home });
  const row = { prompt: [{ role: "user", content: "1+4" }], answer: "so 5", solution: "5" };
  await Deno.writeTextFile(`${dir}/rows.jsonl`, `${JSON.stringify(row)}\n`);
  const config = (fields: string) => `
flow: online
model: { path: a_model_that_is_not_there_yet }
rounds: 1
prompts_per_round: 1
samples_per_prompt: 2
algorithm: grpo
reward: exact_match
data:
  train: [{ path: rows.jsonl, ${fields} }]
  eval: [{ path: rows.jsonl }]
`;
  await Deno.writeTextFile(
    `${dir}/config.yaml`,
    config("fields: { answer: solution, completion: answer }"),
  );
  const { splits } = await json<
    {
      splits: {
        split: string;
        preview: { answer: string; completion?: string }[];
        files: { shapes: { advice?: string }[] }[];
      }[];
    }
  >(["data", "preview", `${dir}/config.yaml`, ...at]);
  deepStrictEqual(
    splits.map(({ split, preview: [row], files: [file] }) => [
      split,
      row!.answer,
      row!.completion,
      file!.shapes[0]!.advice !== undefined,
    ]),
    [["train", "5", "so 5", false], ["eval", "so 5", undefined, true]],
  );
  const overridden = await rl(
    ["data", "preview", `${dir}/config.yaml`, "data.train.0.fields.prompt=none", ...at],
  );
  deepStrictEqual([overridden.code, overridden.out], [2, ""]);
  match(overridden.err, /rows\.jsonl:1.* none/);
  const stray = await rl(["data", "preview", GOOD, "seed=1", ...at]);
  strictEqual(stray.code, 2);
  match(stray.err, /Cannot use seed=1 because .* is a data file\. Fix: leave the overrides out/);
});
