import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { orphans } from "../crash/runs.ts";
import { endAll, exists, freshHome, json, leftOvers, rl, SMALL, start } from "./fixtures.ts";

type Listed = { id: string; status: string; queue: string | null; priority: number; position: number | null };
type Shown = { status: string; queue: string; engine_pid: number | null; generated: { groups: number }; round: number };

Deno.test.afterAll(endAll);

Deno.test("run --detach checks everything, records the run, prints its id, and starts nothing", async () => {
  const home = await freshHome();
  const at = ["--home", home];
  const wrong = await rl(["run", SMALL, ...at, "--detach", "online.rounds=none"]);
  deepStrictEqual([wrong.code, wrong.out], [2, ""]);
  const lone = await rl(["run", SMALL, ...at, "--priority", "3"]);
  strictEqual(lone.code, 2);
  match(lone.err, /--queue, --priority and --needs require --detach/);
  const badly = await rl(["run", SMALL, ...at, "--detach", "--needs", "gpu=some"]);
  strictEqual(badly.code, 2);
  match(badly.err, /Cannot use 'gpu=some' for --needs: give NAME=N/);
  const first = await rl(["run", SMALL, ...at, "--id", "first", "--detach"]);
  deepStrictEqual([first.code, first.out], [0, "first\n"], first.err);
  await rl(["run", SMALL, ...at, "--id", "urgent", "--detach", "--priority", "5"]);
  await rl(["run", SMALL, ...at, "--id", "other", "--detach", "--queue", "night"]);
  const listed = (await json<Listed[]>(["runs", ...at])).map((r) => [r.id, r.status, r.queue, r.priority, r.position]);
  deepStrictEqual(listed.sort(), [
    ["first", "queued", "default", 0, 2],
    ["other", "queued", "night", 0, 1],
    ["urgent", "queued", "default", 5, 1],
  ]);
  strictEqual((await rl(["cancel", "first", ...at])).out, "run first is cancelled\n");
  strictEqual((await json<Shown>(["show", "first", ...at])).status, "cancelled");
  deepStrictEqual(await leftOvers(home), { runs: 3, processes: 0 });
});

Deno.test("serve: shown from another process, stopped in order by SIGTERM, and another engine ends the run", async () => {
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
