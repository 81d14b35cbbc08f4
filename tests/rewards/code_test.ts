import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import {
  functionOf,
  RewardConfig,
  rightness,
  rowCheck,
  scoringFunctions,
} from "../../rewards/mod.ts";
import { answerReader } from "../../rewards/mod.ts";
import { codeSettings } from "../../rewards/code.ts";

const config = RewardConfig.parse({ name: "code", weight: 2, label: "program" });

Deno.test("scoringFunctions() sends code to the reward processes, with its settings", () => {
  const [code] = scoringFunctions([config]);
  deepStrictEqual(
    [code!.name, code!.runs_on, code!.style, code!.timeout_ms, code!.process!.memory_gib],
    ["program", "process", "holdfast", 240_000, null],
  );
  const { runtime, ...settings } = code!.settings!;
  deepStrictEqual(settings, {
    sandbox: "pyodide",
    without_namespaces: "refuse",
    credit: "fraction",
    tests: null,
    case_timeout_ms: 5_000,
    timeout_ms: 30_000,
    memory_mib: 1024,
    file_mib: 16,
    output_kib: 1024,
    processes_max: 16,
    slowed: 4,
  });
  strictEqual((runtime as { deno: string }).deno, Deno.execPath());
  strictEqual(functionOf(config)!.source, "holdfast_worker.rewards.graders.code_answer:grader");
});

Deno.test("codeSettings() names Pyodide's files, which Deno has in its cache", async () => {
  const { runtime } = codeSettings(config as Parameters<typeof codeSettings>[0]);
  const { host, pyodide } = runtime as { host: string; pyodide: string };
  strictEqual((await Deno.stat(host)).isFile, true);
  for (const name of ["pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip"]) {
    strictEqual((await Deno.stat(`${pyodide}/${name}`)).isFile, true, name);
  }
});

Deno.test("code needs cases, says what is right and reads no answers", () => {
  const check = rowCheck(config);
  strictEqual(check({ columns: { test_list: ["assert f()"] } }), null);
  strictEqual(check({ answer: '{"inputs": [], "outputs": []}', columns: {} }), null);
  match(check({ columns: { tests: [], test: "" } })!, /code because the row has no cases: none of/);
  const named = rowCheck(RewardConfig.parse({ name: "code", tests: "mine" }));
  match(named({ columns: { tests: "assert 1" } })!, /none of mine/);
  deepStrictEqual(rightness([config], null), { by: "program", at: 1, says: false });
  strictEqual(answerReader(config), null);
});
