import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { inProcess } from "../in_process.ts";

const home = await freshFakeHome();
await createFakeRun(home, "done", { rounds: 1 });
await executeFake(home, "done");
await createFakeRun(home, "dropped", { rounds: 1 });
await inProcess(["cancel", "dropped"], { home });
const resume = (...args: string[]) => inProcess(["resume", ...args], { home });

Deno.test("resume of a run that is done exits 0 and writes its metrics again", async () => {
  const metrics = `${home.runDir("done")}/metrics.jsonl`;
  await Deno.remove(metrics).catch(() => {});
  deepStrictEqual(await resume("done"), {
    code: 0,
    out: "",
    err: "run done is already done: nothing to resume\n",
  });
  match(await Deno.readTextFile(metrics), /"reward\/mean":0\.5,/);
});

Deno.test("resume refuses a run that was cancelled", async () => {
  deepStrictEqual(await resume("dropped"), {
    code: 2,
    out: "",
    err: "Cannot resume run 'dropped' because it was cancelled: start a new one\n",
  });
});

Deno.test("resume takes a first argument with '=' as a setting, not as a run", async () => {
  const { code, err } = await resume("checkpoints.keep_last=2");
  strictEqual(code, 2);
  match(err, /^Cannot resume because no run is interrupted or failed/);
});
