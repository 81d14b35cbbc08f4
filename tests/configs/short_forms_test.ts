import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { DIR, ONLINE, online } from "./parsed.ts";

Deno.test("parseConfig() writes short forms out, fills defaults in and makes paths absolute", async () => {
  const config = await online(
    [],
    ONLINE.replace("reward: exact_match", "reward: [gsm8k, my_reward.py:score_answer]"),
  );
  deepStrictEqual(config.reward, [
    { name: "gsm8k", weight: 1, fallback: "none" },
    { name: "python", weight: 1, source: `${DIR}/my_reward.py:score_answer`, timeout_ms: 10_000 },
  ]);
  strictEqual(config.algorithm.name, "grpo");
  strictEqual(config.model.path, `${DIR}/model`);
  strictEqual(config.data.train[0]!.path, `${DIR}/rows.jsonl`);
  deepStrictEqual(config.data.eval, []);
  strictEqual(config.lag, 0);
  strictEqual(config.trainer.optimizer.lr, 1e-5);
});
