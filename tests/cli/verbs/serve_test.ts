import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { orphans } from "../../crash/runs.ts";
import { endAll, exists, freshHome, json, rl, SMALL, start } from "../fixtures.ts";

type Shown = {
  status: string;
  queue: string;
  engine_pid: number | null;
  generated: { groups: number };
  round: number;
};

Deno.test.afterAll(endAll);

Deno.test("serve releases a run on SIGTERM, and another engine ends it", async () => {
  const home = await freshHome();
  const at = ["--home", home];
  await rl(["run", SMALL, ...at, "--id", "a", "--detach"]);
  const first = start(["serve", ...at]);
  const logs = start(["logs", "a", ...at, "--follow"]);
  await first.says("a  round 2/6");
  const shown = await json<Shown>(["show", "a", ...at]);
  deepStrictEqual([shown.status, shown.queue, shown.engine_pid], ["running", "default", first.pid]);
  first.kill("SIGTERM");
  const stopped = await first.ended;
  strictEqual(stopped.code, 0, stopped.err);
  match(stopped.err, /a {2}released/);
  strictEqual(await orphans(home), 0);
  strictEqual((await json<Shown>(["show", "a", ...at])).status, "queued");
  const second = await rl(["serve", ...at, "--until-idle"]);
  strictEqual(second.code, 0, second.err);
  match(second.err, /a {2}taken\n[^]*a {2}round 6\/6[^]*a {2}done/);
  const done = await json<Shown>(["show", "a", ...at]);
  // 48 draws, and 16 problems before and after: nothing was generated twice.
  deepStrictEqual([done.status, done.round, done.generated.groups], ["done", 6, 80]);
  const followed = await logs.ended;
  strictEqual(followed.code, 0, followed.err);
  match(followed.out, /^attempt_1\/\S+\.log: .+$/m);
  strictEqual(await exists(`${home}/runs/a/final/config.json`), true);
  strictEqual(await exists(`${home}/runs/a/metrics.jsonl`), true);
  strictEqual(await orphans(home), 0);
});
