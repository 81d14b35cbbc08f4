import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { tryReward } from "../../entry/runs.ts";
import { ensureTestEnvironments, HOME } from "../environments.ts";

const EXAMPLES = new URL("../../examples/", import.meta.url).pathname;

for (const name of ["digits_in_place", "graded"]) {
  Deno.test(`my_reward.py:${name} scores the rows of sorting.jsonl`, async () => {
    await ensureTestEnvironments();
    const options = { data: `${EXAMPLES}sorting.jsonl`, count: 8, timeout_ms: 10_000, home: HOME };
    const tested = await tryReward(`${EXAMPLES}my_reward.py:${name}`, options);
    strictEqual(tested.failed, 0);
    deepStrictEqual(tested.results.map(({ row_id, score }) => [row_id, score]), [
      ["one", 1],
      ["two", 0.6],
      ["three", 0.8],
      ["four", 0.2],
    ]);
  });
}
