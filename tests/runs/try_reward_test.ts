import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { tryReward } from "../../runs/mod.ts";

const DATA = new URL("../../examples/sorting.jsonl", import.meta.url).pathname;
const options = { data: DATA, count: 8, timeout_ms: 1000, home: "nowhere" };

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
    /Cannot test reward 'exact_mach' .*did you mean exact_match/,
  );
});
