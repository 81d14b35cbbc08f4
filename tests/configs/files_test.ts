import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { absolute, fileIssue, namedFiles } from "../../configs/files.ts";

const dir = await Deno.makeTempDir({ prefix: "files_test_" });
Deno.test.afterAll(() => Deno.remove(dir, { recursive: true }));
type Kind = "model" | "rows" | "reward" | "algorithm" | "python";
const issue = async (kind: Kind, text: string) =>
  (await fileIssue({ path: ["x"], kind, text }, "run.yaml"))?.message ?? null;

Deno.test("namedFiles() finds each file with its kind, and skips what is not text", () => {
  const value = {
    model: { path: "m" },
    data: { train: [{ path: "a.jsonl" }, { path: 3 }], eval: [{ path: "b.jsonl" }] },
    reward: [{ source: "r.py:f" }, { path: "judge" }],
    algorithm: { source: "alg.py" },
    sampler: { python: "python3.12" },
    trainer: { python: null },
  };
  deepStrictEqual(namedFiles(value).map(({ path, kind }) => `${path.join(".")} ${kind}`), [
    "model.path model",
    "data.train.0.path rows",
    "data.eval.0.path rows",
    "algorithm.source algorithm",
    "reward.0.source reward",
    "reward.1.path model",
    "sampler.python python",
  ]);
  deepStrictEqual(namedFiles(null), []);
});

Deno.test("absolute() leaves a bare command to PATH, and starts ~/ at the home directory", () => {
  const of = (kind: Kind, text: string) => absolute({ kind, text }, "/config");
  strictEqual(of("python", "python3.12"), "python3.12");
  strictEqual(of("python", "env/bin/python"), "/config/env/bin/python");
  strictEqual(of("rows", "../a.jsonl"), "/a.jsonl");
  strictEqual(of("rows", "/data/a.jsonl"), "/data/a.jsonl");
  strictEqual(of("rows", "~/a.jsonl"), `${Deno.env.get("HOME")}/a.jsonl`);
});

Deno.test("absolute() leaves a hub's model as it is, unless it is a directory", async () => {
  const of = (text: string) => absolute({ kind: "model", text }, dir);
  strictEqual(of("owner/name@main"), "owner/name@main");
  strictEqual(of("./owner/name"), `${dir}/owner/name`);
  strictEqual(of("owner"), `${dir}/owner`);
  strictEqual(await issue("model", "owner/name@main"), null);
  await Deno.mkdir(`${dir}/owner/name`, { recursive: true });
  strictEqual(of("owner/name"), `${dir}/owner/name`);
  strictEqual(absolute({ kind: "rows", text: "owner/rows" }, dir), `${dir}/owner/rows`);
});

Deno.test("a data set of the hub stays as it is, and only its form is checked", async () => {
  const name = "hf://datasets/owner/rows@main?split=train";
  strictEqual(absolute({ kind: "rows", text: name }, dir), name);
  strictEqual(
    absolute({ kind: "rows", text: "./hf://datasets/a/b" }, dir),
    `${dir}/hf:/datasets/a/b`,
  );
  strictEqual(await issue("rows", name), null);
  strictEqual(
    await issue("rows", "hf://owner/rows"),
    "hf://owner/rows: it is not a data set of the hub; write hf://datasets/OWNER/NAME@REVISION, " +
      "with ?subset=NAME&split=NAME or /FILES after it",
  );
});

Deno.test("absolute() keeps the path of a model that 'fetch' puts there", () => {
  const root = decodeURIComponent(new URL("../..", import.meta.url).pathname).slice(0, -1);
  const text = "models/SmolLM2-135M-Instruct";
  strictEqual(absolute({ kind: "model", text }, root), `${root}/${text}`);
  strictEqual(absolute({ kind: "model", text }, dir), text);
});

Deno.test("fileIssue() says what a model's directory lacks", async () => {
  const model = `${dir}/model`;
  const neither = "it is not a model of the hub: OWNER/NAME or OWNER/NAME@REVISION";
  strictEqual(await issue("model", model), `there is no directory at ${model}, and ${neither}`);
  await Deno.mkdir(model);
  match((await issue("model", model))!, /has no config\.json and no weights \(\*\.safetensors\)$/);
  await Deno.writeTextFile(`${model}/config.json`, "{}");
  await Deno.writeTextFile(`${model}/model.safetensors`, "");
  strictEqual(await issue("model", model), null);
  const file = `${model}/config.json`;
  strictEqual(await issue("model", file), `there is a file, not a model directory, at ${file}`);
});

Deno.test("fileIssue() finds a reward's function by name, and suggests a close one", async () => {
  const file = `${dir}/reward.py`;
  await Deno.writeTextFile(file, "def score(completion):\n  return 1\n");
  strictEqual(await issue("reward", `${file}:score`), null);
  strictEqual(
    await issue("reward", `${file}:scor`),
    `${file} has no function 'scor' (did you mean score?)`,
  );
  strictEqual(await issue("reward", `${dir}/none.py:f`), `there is no file at ${dir}/none.py`);
});

Deno.test("fileIssue() checks that rows are a file and an algorithm has a loss", async () => {
  strictEqual(await issue("rows", `${dir}/none.jsonl`), `there is no file at ${dir}/none.jsonl`);
  strictEqual(
    await issue("rows", `${dir}/openai/gsm8k`),
    `there is no file at ${dir}/openai/gsm8k; a data set of the hub is named ` +
      "hf://datasets/OWNER/NAME",
  );
  const pattern = `${dir}/*.parquet`;
  match(String(await issue("rows", pattern)), /\*\.parquet: the pattern matches no file/);
  const file = `${dir}/alg.py`;
  await Deno.writeTextFile(file, "def los(x, c): ...\n");
  strictEqual(
    await issue("algorithm", file),
    `${file} has no function 'loss' (did you mean los?)`,
  );
  await Deno.writeTextFile(file, "def loss(x, c): ...\n");
  strictEqual(await issue("algorithm", file), null);
});
