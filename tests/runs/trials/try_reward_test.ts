import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { tryReward } from "../../../runs/mod.ts";
import { rowHome } from "../../data/row_home.ts";

const DATA = new URL("../../../examples/sorting.jsonl", import.meta.url).pathname;
const options = { data: DATA, count: 8, home: await rowHome() };

Deno.test("tryReward() scores each row on its own answer, and counts scores", async () => {
  const { results, scores, rows, failed } = await tryReward("exact_match", options);
  deepStrictEqual(results.map(({ row_id, score }) => [row_id, score]), [["one", 1], ["two", 0], [
    "three",
    0,
  ], [
    "four",
    0,
  ]]);
  deepStrictEqual([rows, failed, scores], [4, 0, { "0.00": 3, "1.00": 1 }]);
  strictEqual((await tryReward("exact_match", { ...options, count: 2 })).rows, 2);
});

Deno.test("tryReward() calls what a reward throws the row's failure, and goes on", async () => {
  const data = await Deno.makeTempFile({ suffix: ".jsonl" });
  try {
    const rows = ["a word", "7"].map((answer, i) => ({
      id: `${i}`,
      prompt: "?",
      answer,
      completion: "#### 7",
    }));
    await Deno.writeTextFile(data, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    const { failed, results, scores } = await tryReward("gsm8k", { ...options, data });
    deepStrictEqual([failed, results.map(({ score }) => score), scores], [1, [null, 1], {
      "1.00": 1,
    }]);
    match(results[0]!.error!, /a word/);
  } finally {
    await Deno.remove(data);
  }
});

Deno.test("tryReward() names the reward that was nearly given", async () => {
  await rejects(
    tryReward("exact_mach", options),
    /Cannot use reward 'exact_mach' .*did you mean exact_match/,
  );
});

Deno.test("tryReward() takes the settings of a shipped reward", async () => {
  const tried = (entry: string) => tryReward(entry, { ...options, count: 1 });
  const { results } = await tried("{ name: format, pattern: '[0-9]+' }");
  strictEqual(results[0]!.score, 1);
  await rejects(tried("format"), /because entry 1: needs either `tags` or `pattern`/);
  await rejects(tried("{ name: length, max: 0 }"), /because entry 1\.max: Too small/);
  await rejects(tried("{ name: length, max: "), /because it is not YAML: /);
});

Deno.test("tryReward() takes one reward, and options that it has settings for", async () => {
  await rejects(
    tryReward("[gsm8k, length]", options),
    /it has 2 rewards\. Fix: test one at a time/,
  );
  await rejects(
    tryReward("gsm8k", { ...options, timeout_ms: 5 }),
    /Cannot use --timeout-ms with 'gsm8k' because it has no such setting/,
  );
  await rejects(
    tryReward("{ name: math }", { ...options, style: "trl" }),
    /Cannot use --style with .* because it is no function in Python/,
  );
});

Deno.test("tryReward() takes an entry of a function in Python, with its settings", async () => {
  const dir = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(
      `${dir}/mine.py`,
      "import time\ndef hangs(completion): time.sleep(60)\ndef one(completion): return 1\n",
    );
    const of = async (text: string, more = {}) =>
      await tryReward(text, { ...options, count: 1, ...more });
    const hung = await of(`{ name: "${dir}/mine.py:hangs", timeout_ms: 200 }`);
    deepStrictEqual(hung.failures, { timeout: 1 });
    match(hung.results[0]!.error!, /after 200 ms/);
    const other = await of(`{ name: "${dir}/mine.py:hangs", timeout_ms: 200 }`, {
      timeout_ms: 300,
    });
    match(other.results[0]!.error!, /after 300 ms/, "an option takes precedence");
    const long = { name: "python", source: `${dir}/mine.py:one`, weight: 2, label: "x" };
    const { style, scores } = await of(JSON.stringify(long));
    deepStrictEqual([style?.style, scores], ["holdfast", { "1.00": 1 }]);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test({
  name:
    "tryReward() asks about a function that sees every process of root's machine before it runs",
  ignore: Deno.uid() !== 0,
  fn: async () => {
    const say = (text: string) => {
      throw new Error(text);
    };
    await rejects(
      tryReward("{ name: /nowhere.py:f, isolate: false }", { ...options, say }),
      /^Error: Is this intended\? reward \/nowhere\.py:f has isolate: false and runs as root: /,
    );
  },
});
