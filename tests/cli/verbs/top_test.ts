import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { watch } from "../../../cli/verbs/top.ts";
import { WatchedRuns } from "../../../cli/watched_runs.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { Terminal } from "../display/terminal.ts";
import { inProcess } from "../in_process.ts";
import { timedHome } from "../replayed_run.ts";

Deno.test("top without a terminal prints the unfinished runs once; --all adds the ended ones", async () => {
  const home = await freshFakeHome();
  strictEqual(
    (await inProcess(["top"], { home })).out,
    "no run to watch: start one with 'run CONFIG'\n",
  );
  await createFakeRun(home, "done", { rounds: 2 });
  await executeFake(home, "done");
  await createFakeRun(home, "new", { rounds: 2 });
  const ids = ({ out }: { out: string }) =>
    out.trimEnd().split("\n").slice(1).map((line) => line.split(/ +/).slice(0, 2));
  deepStrictEqual(ids(await inProcess(["top"], { home })), [["new", "interrupted"]]);
  deepStrictEqual(ids(await inProcess(["top", "--all", "--once"], { home })), [
    ["new", "interrupted"],
    ["done", "done"],
  ]);
  const { code, out } = await inProcess(["top", "--json", "--all"], { home });
  strictEqual(code, 0);
  const [, done] = JSON.parse(out);
  deepStrictEqual([done.id, done.loop, done.round, done.rounds, done.rewards.length], [
    "done",
    "round",
    2,
    2,
    2,
  ]);
});

Deno.test("top on a terminal draws the runs again every two seconds until it is stopped", async () => {
  const { home, clock } = await timedHome();
  const screen = new Terminal({ columns: 60, rows: 6 });
  const stop = new AbortController();
  const ended = watch(new WatchedRuns(home, { clock }), { screen, clock, stop: stop.signal });
  await clock.untilSleeping();
  match(screen.lines[0]!, /^no run to watch/);
  for (const id of ["a", "b", "c", "d", "e"]) await createFakeRun(home, id);
  await clock.advance(2000);
  await clock.untilSleeping();
  deepStrictEqual(screen.lines.map((line) => line.split(" ")[0]), [
    "run",
    "e",
    "d",
    "c",
    "and",
    "",
  ]);
  stop.abort();
  await ended;
});
