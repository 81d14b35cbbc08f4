import { deepStrictEqual } from "node:assert/strict";
import { isRecorded } from "../../../runs/session/recorded.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

Deno.test("isRecorded() is true for a stage with a result and what it called", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const keys = ["round/1/train_policy", "round/1/train_policy/step", "prepare_policy"];
  deepStrictEqual(await Promise.all(keys.map((key) => isRecorded(home.store, "a", key))), [
    true,
    true,
    true,
  ]);
});

Deno.test("isRecorded() is false for what has no result", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const keys = ["round/2/train_policy", "round/1", "round", "round/1/train", "elsewhere"];
  deepStrictEqual(await Promise.all(keys.map((key) => isRecorded(home.store, "a", key))), [
    false,
    false,
    false,
    false,
    false,
  ]);
});
