import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { ensureEnvironment, environmentKind } from "../../workers/mod.ts";
import { orphans } from "../crash/runs.ts";
import { endAll, freshHome, json, remains, rl, SMALL } from "./fixtures.ts";

Deno.test.afterAll(endAll);
const home = await freshHome();
const at = ["--home", home];
/** The smallest run that trains: what is tested is how it fails and that it can be mended. */
const TINY = ["warmup.rounds=1", "online.rounds=1", "evaluate.problems=2"];
const NO_RUN_YET = { runs: 0, processes: 0 };

async function evaluateConfig(model: string, rows: string): Promise<string> {
  const file = `${home}/evaluate.yaml`;
  const data = `data: { eval: [{ path: ${rows} }] }`;
  await Deno.writeTextFile(
    file,
    `flow: evaluate\nmodel: { path: ${model} }\n${data}\nreward: exact_match\n`,
  );
  return file;
}

/** What looks like a model directory to whoever lists it. */
async function hollowModel(): Promise<string> {
  const dir = `${home}/hollow`;
  await Deno.mkdir(dir, { recursive: true });
  await Deno.writeTextFile(`${dir}/config.json`, `{"model_type":"qwen3"}`);
  await Deno.writeTextFile(`${dir}/model.safetensors`, "no tensors");
  return dir;
}

async function rows(text: string): Promise<string> {
  const file = `${home}/rows.jsonl`;
  await Deno.writeTextFile(file, text);
  return file;
}

Deno.test("a broken data row is told by file, line and field with exit 2, and nothing is recorded or started", async () => {
  const file = await evaluateConfig(
    await hollowModel(),
    await rows(`{"prompt":"a","answer":"b"}\n{"prompt":1,"answer":"b"}\n`),
  );
  const { code, err } = await rl(["run", file, ...at]);
  strictEqual(code, 2);
  match(err, /^\S*rows\.jsonl:2 prompt: /);
  deepStrictEqual(await remains(home), NO_RUN_YET);
});

Deno.test("a reward that cannot be imported, and rows without the answer it needs, are exit 2 and nothing is recorded", async () => {
  await Deno.writeTextFile(
    `${home}/broken.py`,
    "def f(completion, answer):\n  return 1\nraise KeyError('setup')\n",
  );
  const broken = await rl(["run", SMALL, ...TINY, `reward=${home}/broken.py:f`, ...at]);
  deepStrictEqual([broken.code, broken.err.split("\n")[0]], [
    2,
    `Cannot import reward '${home}/broken.py:f':`,
  ]);
  match(broken.err, /KeyError: 'setup'\n {2}File ".*broken\.py", line 3/);
  const file = await evaluateConfig(
    await hollowModel(),
    await rows(`{"prompt":"a","answer":"b"}\n{"prompt":"c"}\n`),
  );
  const { code, err } = await rl(["run", file, ...at]);
  strictEqual(code, 2, err);
  match(
    err,
    /^Cannot start because 1 of 2 rows cannot be scored; the first one is row '\w+' of data\./,
  );
  deepStrictEqual(await remains(home), NO_RUN_YET);
});

Deno.test("a directory that is no model is told with its place in the file, exit 2; so is one that is not there", async () => {
  const data = await rows(`{"prompt":"a","answer":"b"}\n`);
  const none = await rl(["run", await evaluateConfig("nowhere", data), ...at]);
  deepStrictEqual([
    none.code,
    /evaluate\.yaml:2:\d+ model\.path: there is no directory/.test(none.err),
  ], [2, true]);
  const empty = await rl(["run", await evaluateConfig(home, data), ...at]);
  deepStrictEqual([
    empty.code,
    /model\.path: .* is not a Hugging Face model directory/.test(empty.err),
  ], [2, true]);
  deepStrictEqual(await remains(home), NO_RUN_YET);
});

Deno.test("a model directory that only looks like one fails the run with the cause first, its log and the next command", async () => {
  const file = await evaluateConfig(
    await hollowModel(),
    await rows(`{"prompt":"a","answer":"b"}\n`),
  );
  const { code, err } = await rl(["run", file, ...at, "--id", "hollow"]);
  strictEqual(code, 3, err);
  const lines = err.split("\n");
  match(lines[1]!, /^run hollow failed: .*Cannot open model '.*hollow'/);
  ok(lines.some((line) => /^ {2}log: .*trainer\.rank0\.gen1\.log$/.test(line)));
  ok(
    lines.includes(
      `Nothing recorded is lost. Fix the cause, then resume with: deno task rl resume hollow --home ${home}`,
    ),
  );
  strictEqual(await orphans(home), 0);
});

Deno.test("a hub port in use is named, and the command that is advised resumes the run while it still is", async () => {
  const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  try {
    const { port } = taken.addr as Deno.NetAddr;
    const { code, err } = await rl([
      "run",
      SMALL,
      ...TINY,
      `workers.port=${port}`,
      ...at,
      "--id",
      "port",
    ]);
    strictEqual(code, 3, err);
    match(err, new RegExp(`Cannot listen on 127\\.0\\.0\\.1:${port} because the port is in use`));
    const [, args] =
      /^ {2}next: deno task rl (resume port workers\.port=0 --home .+)$/m.exec(err) ?? [];
    const resumed = await rl(args!.split(" "));
    strictEqual(resumed.code, 0, resumed.err);
    const { settings } = await json(["show", "port", ...at]);
    deepStrictEqual(settings, [{ path: "workers.port", read_by: "workers", from: port, to: 0 }]);
    match(
      (await rl(["show", "port", ...at])).out,
      new RegExp(`^setting +workers\\.port ${port} -> 0$`, "m"),
    );
  } finally {
    taken.close();
  }
});

Deno.test("a worker that dies on import tells the cause, its log's last lines, the log and what to do; mended, resume goes on", async () => {
  const broken = `${home}/broken`;
  await Deno.mkdir(`${broken}/torch`, { recursive: true });
  await Deno.writeTextFile(
    `${broken}/torch/__init__.py`,
    `raise ImportError("libcudart.so.13: no such file")\n`,
  );
  const real = await ensureEnvironment(environmentKind("torch"));
  const python = `${home}/my_python`;
  await Deno.writeTextFile(
    python,
    `#!/bin/sh\nPYTHONPATH=${broken}:$PYTHONPATH exec ${real} "$@"\n`,
    { mode: 0o755 },
  );
  const { code, err } = await rl([
    "run",
    SMALL,
    ...TINY,
    `trainer.python=${python}`,
    ...at,
    "--id",
    "import",
  ]);
  strictEqual(code, 3, err);
  const lines = err.split("\n");
  match(
    lines[1]!,
    /^run import failed: .*trainer because rank 0 failed: ImportError: libcudart\.so\.13: no such file$/,
  );
  ok(lines.includes("  | ImportError: libcudart.so.13: no such file"));
  const log = lines.find((line) => line.startsWith("  log: "))!.slice("  log: ".length);
  match(await Deno.readTextFile(log), /ImportError: libcudart/);
  ok(lines.some((line) => /^ {2}next: deno task rl /.test(line)));
  match(err, /resume import/);
  strictEqual(await orphans(home), 0);
  await Deno.remove(broken, { recursive: true });
  strictEqual((await rl(["resume", "import", ...at])).code, 0);
});

Deno.test("an environment of one's own that lacks packages is told in one sentence; so is a machine without Python", async () => {
  const bare = `${home}/bare_python`;
  const real = await ensureEnvironment(environmentKind("torch"));
  // -S: without site-packages.
  await Deno.writeTextFile(bare, `#!/bin/sh\nexec ${real} -S "$@"\n`, { mode: 0o755 });
  const lacks = await rl(["run", SMALL, ...TINY, `trainer.python=${bare}`, ...at, "--id", "bare"]);
  strictEqual(lacks.code, 3, lacks.err);
  match(
    lacks.err,
    /run bare failed: .*bare_python' because it lacks websockets, .*torch.*\. Fix: install them there \(.*bare_python -m pip install websockets .*\), or leave/,
  );
  const none = `${home}/without_environments`;
  const path = await Deno.makeTempDir({ dir: home });
  const absent = await rl(["run", SMALL, ...TINY, "--home", none, "--id", "absent"], {
    PATH: path,
    HOLDFAST_PYTHON: "", // None is named.
  });
  strictEqual(absent.code, 3, absent.err);
  match(absent.err, /Python 3\.11 to 3\.\d+ is needed: none was found on PATH/);
  const runs = await json<{ id: string; resumable: boolean }[]>(["runs", "--home", none]);
  deepStrictEqual(runs.map(({ id, resumable }) => [id, resumable]), [["absent", true]]);
});
