import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import {
  configuredGraceS,
  ONE_PRESS_MS,
  preemptGraceS,
  RunGraces,
  StopRequests,
} from "../../cli/stop_requests.ts";
import { ManualClock } from "../../engine/mod.ts";

function bench() {
  const clock = new ManualClock();
  const notes: string[] = [];
  const requests = new StopRequests({
    graceS: () => 20,
    note: (what) => notes.push(what),
    exit: () => Promise.resolve(notes.push("exit")),
    clock,
  });
  return { clock, notes, requests };
}

Deno.test("SIGINT drains, and ends at once the second time", async () => {
  const { clock, notes, requests } = bench();
  requests.interrupted();
  deepStrictEqual([requests.drain.aborted, requests.preempted()], [true, false]);
  await clock.advance(ONE_PRESS_MS);
  requests.interrupted();
  deepStrictEqual(notes, ["draining", "at_once", "exit"]);
});

Deno.test("one press of Ctrl-C that deno task and npx forward is one request", async () => {
  const { clock, notes, requests } = bench();
  requests.interrupted();
  for (const ms of [0, 3, 300]) {
    await clock.advance(ms);
    requests.interrupted();
  }
  deepStrictEqual(notes, ["draining"]);
});

Deno.test("keys that are pressed all the time end it at once", async () => {
  const { clock, notes, requests } = bench();
  for (let ms = 0; ms <= ONE_PRESS_MS; ms += 100) {
    requests.interrupted();
    await clock.advance(100);
  }
  deepStrictEqual(notes, ["draining", "at_once", "exit"]);
});

Deno.test("an immediate stop happens once, and nothing is shown while it lasts", async () => {
  const { clock, notes, requests } = bench();
  const shown: string[] = [];
  const screen = requests.quietAtTheEnd({
    tty: false,
    color: false,
    columns: 80,
    rows: 24,
    write: (text) => shown.push(text),
  });
  requests.terminated();
  screen.write("before");
  strictEqual(requests.exiting, undefined);
  for (let press = 0; press < 3; press++) {
    requests.interrupted();
    await clock.advance(ONE_PRESS_MS);
  }
  await clock.advance(20_000); // The grace of the SIGTERM.
  screen.write("after");
  await requests.exiting;
  deepStrictEqual([notes, shown], [["preempted", "at_once", "exit"], ["before"]]);
});

Deno.test("SIGTERM drains as a preemption, however often it comes, and ends at once when the grace is over", async () => {
  const { clock, notes, requests } = bench();
  requests.terminated();
  requests.terminated();
  deepStrictEqual([requests.drain.aborted, requests.preempted(), notes], [true, true, [
    "preempted",
  ]]);
  await clock.advance(19_999);
  strictEqual(notes.length, 1);
  await clock.advance(1);
  deepStrictEqual(notes, ["preempted", "grace_over", "exit"]);
});

Deno.test("SIGTERM after Ctrl-C is a preemption still; Ctrl-C after SIGTERM ends at once", async () => {
  const { clock, notes, requests } = bench();
  requests.interrupted();
  requests.terminated();
  strictEqual(requests.preempted(), true);
  await clock.advance(ONE_PRESS_MS);
  requests.interrupted();
  deepStrictEqual(notes, ["draining", "preempted", "at_once", "exit"]);
});

Deno.test("StopRequests.listen() ends the grace with the run", async () => {
  const { clock, notes, requests } = bench();
  const release = requests.listen();
  requests.terminated();
  release();
  await clock.advance(60_000);
  deepStrictEqual(notes, ["preempted"]);
});

Deno.test("preemptGraceS(): the environment goes before the configuration, and what is no number is refused", () => {
  deepStrictEqual([
    preemptGraceS(40, undefined),
    preemptGraceS(40, "7.5"),
    preemptGraceS(undefined, ""),
  ], [
    40,
    7.5,
    25,
  ]);
  throws(() => preemptGraceS(40, "soon"), /HOLDFAST_PREEMPT_GRACE_S='soon'/);
});

Deno.test("configuredGraceS() is the workers' of a configuration, else what it stands for by itself", () => {
  const configurations = [{ workers: { preempt_grace_s: 40 } }, { workers: {} }, {}];
  deepStrictEqual(configurations.map(configuredGraceS), [40, 25, 25]);
});

Deno.test("RunGraces has the longest grace of the runs that go on here", () => {
  const graces = new RunGraces();
  const longest = [graces.longest()];
  for (const [run, preempt_grace_s] of [["a", 60], ["b", 10]] as const) {
    graces.begun(run, { workers: { preempt_grace_s } });
    longest.push(graces.longest());
  }
  for (const run of ["a", "b"]) {
    graces.ended(run);
    longest.push(graces.longest());
  }
  deepStrictEqual(longest, [25, 60, 60, 10, 25]);
});

Deno.test("StopRequests asks for the grace when SIGTERM comes, and tells it to the end", async () => {
  const clock = new ManualClock();
  const notes: [string, number][] = [];
  let graceS = 20;
  const note = (what: string, s: number) => void notes.push([what, s]);
  const requests = new StopRequests({
    graceS: () => graceS,
    note,
    exit: () => Promise.resolve(),
    clock,
  });
  graceS = 60;
  requests.terminated();
  graceS = 5;
  await clock.advance(60_000);
  deepStrictEqual(notes, [["preempted", 60], ["grace_over", 60]]);
});
