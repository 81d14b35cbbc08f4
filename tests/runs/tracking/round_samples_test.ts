import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { roundSamples } from "../../../runs/tracking/round_samples.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

Deno.test("roundSamples() are of one round, from the worst to the best", async () => {
  const home = await freshFakeHome();
  const head = await createFakeRun(home, "a", { rounds: 2 });
  await executeFake(home, "a");
  const all = await roundSamples(home, head, { loop: "round", round: 2, count: 1000 });
  ok(all.length > 3);
  const rewards = all.map(({ reward }) => reward!);
  deepStrictEqual(rewards, rewards.toSorted((a, b) => a - b));
  deepStrictEqual([...new Set(all.map(({ round }) => round))], [2]);
  const three = await roundSamples(home, head, { loop: "round", round: 2, count: 3 });
  deepStrictEqual([three.length, three[0], three[2]], [3, all[0], all.at(-1)]);
  strictEqual((await roundSamples(home, head, { loop: "round", round: 9, count: 3 })).length, 0);
});
