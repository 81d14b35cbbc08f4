import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { inProcess } from "../in_process.ts";

Deno.test("track refuses a run without trackers, and one that there is not", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const { code, err } = await inProcess(["track", "a"], { home });
  strictEqual(code, 2);
  match(err, /Cannot track run 'a' because it has no trackers\. Fix: name one/);
  deepStrictEqual((await inProcess(["track", "b"], { home })).code, 2);
});
