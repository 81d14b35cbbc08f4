import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { PreparedCard } from "../../../../flows/mod.ts";
import { sha256Hex } from "../../../../engine/mod.ts";
import { endAll, freshHome, rl, SMALL } from "../../fixtures.ts";

Deno.test.afterAll(endAll);

const home = await freshHome();
const rows = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => i + from)
    .map((n) => `${JSON.stringify({ question: `what is ${n} + ${n}`, answer: `#### ${2 * n}` })}\n`)
    .join("");
await Deno.mkdir(`${home}/in`);
await Deno.writeTextFile(`${home}/in/a.jsonl`, rows(0, 30));
await Deno.writeTextFile(`${home}/in/b.jsonl`, rows(20, 50));
await Deno.writeTextFile(`${home}/held.jsonl`, rows(40, 41));

/** A configuration that writes to a directory of its own. */
async function config(name: string, more = ""): Promise<string> {
  const file = `${home}/${name}.yaml`;
  await Deno.writeTextFile(
    file,
    `flow: prepare\nname: sums\noutput: ${name}\ninputs: in\nneeds: answer\n` +
      `decontaminate: { sets: held.jsonl }\nsplits: { train: 4, eval: 1 }\n${more}`,
  );
  return file;
}

async function digests(dir: string): Promise<Record<string, string>> {
  const names = ["README.md", "card.json", "eval.parquet", "train.parquet"];
  const found = names.map(async (name) => [name, sha256Hex(await Deno.readFile(`${dir}/${name}`))]);
  return Object.fromEntries(await Promise.all(found));
}

const prepare = (file: string, ...args: string[]) =>
  rl(["data", "prepare", file, "--home", home, ...args]);

Deno.test("data prepare writes Parquet and prints its card; nothing is written over", async () => {
  const file = await config("calm");
  const { code, out, err } = await prepare(file, "--json", "--id", "calm");
  strictEqual(code, 0, err);
  const card = PreparedCard.parse(JSON.parse(out));
  deepStrictEqual(card.rows, {
    read: 60,
    written: 49,
    dropped: { contaminated: 1, duplicate: 10 },
  });
  match(err, /run calm is done\. The data is in .*\/calm\./);
  const again = await prepare(file);
  deepStrictEqual([again.code, again.out], [2, ""]);
  match(again.err, /Cannot write prepared data to .*\/calm because it has the data of run 'calm'/);
  const plan = await rl(["plan", file, "--home", home]);
  strictEqual(plan.code, 0, plan.err);
  const text = await prepare(await config("text"));
  match(text.out, /^file +read +written +duplicate +contaminated *\n/);
  match(text.out, /\nall +60 +49 +10 +1 *\n/);
  deepStrictEqual(await digests(`${home}/text`), await digests(`${home}/calm`));
});

Deno.test("data prepare ended by SIGKILL resumes to the same bytes", async () => {
  for (const n of [2, 7, 12]) {
    const name = `killed${n}`;
    const file = await config(name);
    const killed = await rl(["data", "prepare", file, "--home", home, "--id", name], {
      HOLDFAST_FAULT: `kill:engine@append:${n}`,
    });
    strictEqual(killed.signal, "SIGKILL", `${n}: ${killed.err}`);
    const resumed = await rl(["resume", name, "--home", home]);
    strictEqual(resumed.code, 0, resumed.err);
    deepStrictEqual(await digests(`${home}/${name}`), await digests(`${home}/calm`), name);
  }
});

Deno.test("data prepare refuses a different flow, and limits without a tokenizer", async () => {
  const other = await prepare(SMALL);
  strictEqual(other.code, 2);
  match(other.err, /because its flow is 'quickstart': set flow: prepare, or use 'run'/);
  const limits = await prepare(await config("limits", "lengths: { sequence_tokens_max: 9 }\n"));
  strictEqual(limits.code, 2);
  match(limits.err, /lengths\.sequence_tokens_max: needs a tokenizer to count tokens with/);
});

Deno.test("data prepare counts tokens with the tokenizer itself, in a worker", async () => {
  const dir = `${home}/tokenizer`;
  await Deno.mkdir(dir);
  const vocabulary = Object.fromEntries(["<unk>", "what", "is", "+"].map((word, i) => [word, i]));
  const files = {
    "tokenizer.json": {
      version: "1.0",
      added_tokens: [],
      pre_tokenizer: { type: "WhitespaceSplit" },
      model: { type: "WordLevel", vocab: vocabulary, unk_token: "<unk>" },
    },
    "tokenizer_config.json": { tokenizer_class: "PreTrainedTokenizerFast", unk_token: "<unk>" },
    "config.json": { model_type: "llama", max_position_embeddings: 64 },
  };
  for (const [name, content] of Object.entries(files)) {
    await Deno.writeTextFile(`${dir}/${name}`, JSON.stringify(content));
  }
  await Deno.writeTextFile(`${home}/long.jsonl`, '{"prompt":"a b c"}\n{"prompt":"a b c d"}\n');
  const file = `${home}/tokens.yaml`;
  await Deno.writeTextFile(
    file,
    "flow: prepare\noutput: tokens\ninputs: long.jsonl\ntokenizer: { path: tokenizer }\n" +
      "lengths: { prompt_tokens_max: 3 }\n",
  );
  const { code, out, err } = await prepare(file, "--json");
  strictEqual(code, 0, err);
  const { rows, dropped_rows } = PreparedCard.parse(JSON.parse(out));
  deepStrictEqual(rows, { read: 2, written: 1, dropped: { too_long: 1 } });
  strictEqual(dropped_rows[0]!.because, "4 tokens of the prompt, the limit is 3");
});
