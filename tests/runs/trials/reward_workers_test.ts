import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { ArtifactStore } from "../../../engine/mod.ts";
import { processOf } from "../../../rewards/mod.ts";
import { RewardWorkers } from "../../../runs/trials/reward_workers.ts";
import { workerBlocks } from "../../../runs/session/worker_blocks.ts";
import { ensureTestEnvironments } from "../../environments.ts";
import { scratch } from "../../flows/fixtures.ts";

const MINE = fileURLToPath(new URL("../../../examples/my_reward.py", import.meta.url));
const options = { key: "k", attempt: 1, signal: new AbortController().signal };

Deno.test("RewardWorkers starts the reward processes alone, and ends them", async () => {
  const { HOLDFAST_TEST_PYTHON: python } = await ensureTestEnvironments();
  const home = await scratch();
  const artifacts = new ArtifactStore(`${home}/artifacts`);
  const blocks = workerBlocks({ trainer: { python } });
  const workers = new RewardWorkers({ run: "a", dir: `${home}/own`, blocks, artifacts });
  const imported = {
    function: `${MINE}:digits_in_place`,
    style: null,
    settings: null,
    process: processOf({}),
  };
  try {
    const { outputs: [identity] } = await workers.call("identify", imported, options);
    const { code, unit } = identity as { code: string; unit: string };
    deepStrictEqual([code.length, unit], [64, "sample"]);
    const item = { id: "0", completion: "12354", tokens: 5, token_ids: [1], stop: "stop" };
    const columns = { answer: "12345" };
    const shared = { json: JSON.stringify({ prompt: "p", columns, answer: "12345" }) };
    const args = { ...imported, timeout_ms: 10_000, shared, items: [item] };
    const { outputs: [answer] } = await workers.call("score", args, { ...options, key: "l" });
    const { results: [result] } = answer as { results: { score: number; code: string }[] };
    deepStrictEqual([result!.score, result!.code], [0.6, code]);
  } finally {
    await workers.stop();
  }
});

Deno.test("RewardWorkers has no Python without a trainer", async () => {
  const home = await scratch();
  const artifacts = new ArtifactStore(`${home}/artifacts`);
  const none = { run: "a", dir: home, blocks: null, artifacts };
  const workers = new RewardWorkers(none);
  await rejects(workers.call("score", {}, options), /because its graph has no trainer/);
  await workers.stop();
  strictEqual([...Deno.readDirSync(home)].length, 0);
});
