import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { endAll, exists, freshHome, json, leftOvers, rl, ROOT, SMALL } from "./fixtures.ts";

Deno.test.afterAll(endAll);
const home = await freshHome();
const at = ["--home", home];
const GOOD = `${home}/good.jsonl`;
await Deno.writeTextFile(GOOD, `{"prompt":"1+1","answer":"2"}\n{"prompt":"1+2","answer":"3","completion":"4"}\n`);
const BAD = `${home}/bad.jsonl`;
await Deno.writeTextFile(BAD, `{"prompt":"1+1","answer":"2"}\n{"prompt":3}\n`);

Deno.test("plan draws the graph, counts it and says where it runs, as text and as mermaid, and starts nothing", async () => {
  const text = await rl(["plan", SMALL, "online.rounds=3"]);
  strictEqual(text.code, 0);
  const lines = text.out.split("\n");
  match(lines[0]!, /^quickstart {2}[0-9a-f]{12}$/);
  deepStrictEqual(lines.filter((line) => /× \d/.test(line)), [
    "├─ step × 3  <- policy: prepare_raw",
    "├─ round × 3  <- policy: prepare_policy",
  ]);
  ok(lines.includes("│  ├─ assign_credit  <- scored: round/*/score_group, tokens: round/*/score_tokens"));
  ok(lines.includes("train_policy          trainer  6"));
  ok(lines.includes("batch      8 prompts x 4 samples = 32 trajectories a round over 1 rank; x 3 rounds = 96"));
  ok(lines.includes("placement  trainer: torch, 1 x auto, float32"));
  const drawn = (await rl(["plan", SMALL, "--format", "mermaid"])).out;
  match(drawn, /^flowchart TD\n {2}n0\["create_model \[trainer\]"\]\n/);
  match(drawn, /subgraph n\d+\["round × 6"\]/);
  const { graph_hash, stages } = await json<{ graph_hash: string; stages: { stage: string; times: number }[] }>(
    ["plan", SMALL],
  );
  strictEqual(graph_hash.length, 64);
  strictEqual(stages.find(({ stage }) => stage === "train_policy")!.times, 9);
  strictEqual(await exists(`${home}/holdfast.db`), false);
});

Deno.test("config show prints what a run would get, and --origin the place of every value", async () => {
  const { out } = await rl(["config", "show", SMALL, "--origin", "online.rounds=9"]);
  match(out, /\nonline\.rounds +9 +override online\.rounds\n/);
  match(out, /\nonline\.prompts_per_round +8 +.*quickstart_small\.yaml:\d+:\d+\n/);
  match(out, /\nworkers\.grace_s +30 +default\n/);
  const { online } = await json<{ online: { rounds: number } }>(["config", "show", SMALL, "online.rounds=9"]);
  strictEqual(online.rounds, 9);
  const schema = JSON.parse((await rl(["config", "schema"])).out);
  deepStrictEqual(schema, JSON.parse(await Deno.readTextFile(`${ROOT}configs/holdfast.schema.json`)));
});

Deno.test("data preview shows rows as a run reads them, and tells a broken one by file, line and field", async () => {
  const { rows, preview } = await json<{ rows: number; preview: { row_id: string; prompt: string }[] }>(
    ["data", "preview", GOOD, "-n", "1"],
  );
  deepStrictEqual([rows, preview.length, preview[0]!.prompt], [2, 1, "1+1"]);
  const bad = await rl(["data", "preview", BAD]);
  deepStrictEqual([bad.code, bad.out], [2, ""]);
  match(bad.err, /bad\.jsonl:2 prompt: expected text .* got number 3/);
});

Deno.test("data preview shows preferences as pairs, with the prompt that their sides share", async () => {
  const shown = await rl(["data", "preview", `${ROOT}examples/preferences.jsonl`]);
  strictEqual(shown.code, 0);
  const fields = shown.out.split("\n").filter((line) => /chosen|rejected|margin/.test(line)).map((line) => line.trim());
  const read = fields.filter((line) => !line.startsWith("columns"));
  deepStrictEqual(read.map((line) => line.replace(/ +/, " ")), [
    ...[
      "chosen 12345",
      "rejected 12354",
      "chosen 01789",
      "rejected 0178",
      "margin 0.5",
      "chosen 1236",
      "rejected 6321",
    ],
  ]);
  match(shown.out, /prompt +\[\{"role":"user","content":"sort 6321"\}\]/);
});

Deno.test("reward test scores rows with a shipped reward: exit 0, and the reference answers are right", async () => {
  type Tested = { rows: number; failed: number; scores: Record<string, number> };
  const { rows, failed, scores } = await json<Tested>(["reward", "test", "exact_match", "--data", GOOD]);
  deepStrictEqual({ rows, failed, scores }, { rows: 2, failed: 0, scores: { "0.00": 1, "1.00": 1 } });
  const none = await rl(["reward", "test", "exact_mach", "--data", GOOD]);
  strictEqual(none.code, 2);
  match(none.err, /exact_mach.*did you mean exact_match/);
});

Deno.test("reward test runs a Python function apart: a throw is that row's failure and exit 3, a hang ends by its time limit", async () => {
  await Deno.writeTextFile(
    `${home}/mine.py`,
    `import time
def right(completion, row, **_):
    if row["answer"] == "3":
        raise ValueError("cannot grade this")
    return 1.0
def partly(answer):
    return None if answer == "3" else 1
def hangs(completion, row, **_):
    time.sleep(60)
`,
  );
  const test = (name: string) => ["reward", "test", `${home}/mine.py:${name}`, "--data", GOOD, ...at];
  const thrown = await rl(test("right"));
  strictEqual(thrown.code, 3, thrown.err);
  match(thrown.out, /^1 {2}\w+ {2}"2"\nFAILED {2}\w+ {2}"4"\n {2}\| error: ValueError: cannot grade this\n/);
  match(thrown.out, /\n2 rows, 1 failed, p50 /);
  const partly = await rl(test("partly"));
  match(partly.out, /\nUNGRADED {2}\w+ {2}"4"\n2 rows, 0 failed, 1 ungraded, p50 .*\nscore 1\.00: # 1\n$/);
  strictEqual(partly.code, 0, partly.err);
  const hung = await rl([...test("hangs"), "-n", "1", "--timeout-ms", "300"]);
  strictEqual(hung.code, 3);
  match(hung.out, /FAILED .*\n {2}\| timeout/);
  const missing = await rl(test("wrong"));
  strictEqual(missing.code, 2);
  match(missing.err, /mine\.py has no function 'wrong'/);
});

Deno.test("doctor gives each part of the machine a verdict, and a mend where it is not well", async () => {
  const checks = await json<{ name: string; verdict: string; says: string; fix: string | null }[]>(["doctor", ...at]);
  deepStrictEqual(checks.map(({ name }) => name).slice(0, 3), ["deno", "python", "torch"]);
  ok(checks.every(({ verdict, fix }) => (verdict === "OK") === (fix === null)));
  match((await rl(["doctor", ...at])).out, /^OK {4}deno /);
  const bare = await rl(["doctor", ...at], { PATH: "/nowhere", HOLDFAST_PYTHON: "" });
  deepStrictEqual([
    bare.code,
    /^FAIL {2}python +.*Python 3\.11 to 3\.14 is needed: none was found on PATH.*Fix: install one/m.test(bare.out),
  ], [3, true]);
});

Deno.test("what is no command, and an option that is none, are exit 2 with what was nearly meant", async () => {
  const command = await rl(["shwo", ...at]);
  deepStrictEqual([command.code, /'shwo'.*did you mean show/.test(command.err)], [2, true]);
  const option = await rl(["runs", "--jsn", ...at]);
  deepStrictEqual([option.code, /--jsn[\s\S]*--json/.test(option.err)], [2, true]);
  const number = await rl(["rollouts", "--round", "zero", ...at]);
  deepStrictEqual([number.code, /'zero' for --round.*whole number/.test(number.err)], [2, true]);
  strictEqual((await rl(["--help"])).code, 0);
});

Deno.test("all errors of a configuration are told at once, in its order, and nothing is recorded or started", async () => {
  const file = `${home}/bad.yaml`;
  await Deno.writeTextFile(
    file,
    `flow: quickstart
sed: 1
warmup: { rounds: 3, rows_per_round: -2 }
online: { rounds: 6, prompts_per_round: 8, samples_per_prompt: 1 }
algorithm: gpro
trainer: { engine: torch, ranks: 2 }
`,
  );
  const { code, out, err } = await rl(["run", file, "online.round=3", ...at]);
  deepStrictEqual([code, out], [2, ""]);
  const lines = err.trimEnd().split("\n");
  const told = [/bad\.yaml:2:1 .*sed.*did you mean seed/, /bad\.yaml:3:\d+ warmup\.rows_per_round/, /bad\.yaml:5:\d+/];
  for (const pattern of [...told, /bad\.yaml:6:\d+ trainer\.ranks/, /override online\.round.*did you mean/]) {
    ok(lines.some((line) => pattern.test(line)), `${pattern} in\n${err}`);
  }
  deepStrictEqual(await leftOvers(home), { runs: 0, processes: 0 });
});
