import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { attach } from "../../cli/attached_run.ts";
import type { JournalRow, ManualClock } from "../../engine/mod.ts";
import type { Home } from "../../runs/mod.ts";
import { createFakeRun, executeFake, forkFake, freshFakeHome } from "../runs/fake_home.ts";
import { Terminal } from "./display/terminal.ts";
import { recordedRows, ReplayedRun, timedHome } from "./replayed_run.ts";

const ROWS = await recordedRows({ rounds: 4 });
const POLL_MS = 500;

type Watched = { home: Home; clock: ManualClock; id?: string; tty?: boolean };

/** Attaches to a run; `next` polls once more. */
function watch({ home, clock, id = "b", tty = false }: Watched) {
  const screen = new Terminal({ tty, columns: 120 });
  const stop = new AbortController();
  const ended = attach(home, { id }, { screen, clock, detach: stop.signal });
  const waits = () => Promise.race([clock.untilSleeping(), ended]);
  const next = async () => {
    await waits();
    await clock.advance(POLL_MS);
    await waits();
  };
  const rounds = () => screen.written.split("\n").filter((line) => /^round \d/.test(line));
  return { screen, stop, ended, waits, next, rounds };
}

async function replayed(rows: readonly JournalRow[] = ROWS, overrides = {}) {
  const { home, clock } = await timedHome();
  await createFakeRun(home, "b", { rounds: 4, ...overrides });
  return { home, clock, run: new ReplayedRun(home, "b", rows) };
}

Deno.test("attach of a run that is done prints its last round and how it ended, and exits with 0", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "b", { rounds: 3 });
  await executeFake(home, "b");
  const { clock } = await timedHome();
  const { screen, ended } = watch({ home, clock });
  strictEqual(await ended, 0);
  match(
    screen.written,
    /^run b\nround 3\/3 {2}reward 0\.\d{3} .*\nrun b is done\. .*Look at it with: .*show b.*\n$/,
  );
});

Deno.test("attach follows a run that goes on: a line for each round that closes, then its end", async () => {
  const { home, clock, run } = await replayed();
  await run.take();
  await run.run(1);
  const { screen, ended, waits, next, rounds } = watch({ home, clock });
  await waits();
  deepStrictEqual(rounds().map((line) => line.split("  ")[0]), ["round 1/4"]);
  await clock.advance(2000);
  await run.run(3);
  await next();
  deepStrictEqual(rounds().map((line) => line.split("  ")[0]), [
    "round 1/4",
    "round 2/4",
    "round 3/4",
  ]);
  match(rounds().at(-1)!, /1 s left$/); // Two rounds took 2 s; one is left.
  await run.run();
  await home.store.finish("b", run.epoch, "done");
  await next();
  strictEqual(await ended, 0);
  match(screen.written, /\nround 4\/4 .*\nrun b is done\./);
});

Deno.test("attach on a terminal shows stages, who waits for whom, and both curves, drawn in place", async () => {
  const { home, clock, run } = await replayed();
  await run.take();
  await run.run(3);
  const { screen, stop, ended, waits, next } = watch({ home, clock, tty: true });
  await waits();
  deepStrictEqual(screen.lines.map((line) => line.slice(0, 11)), [
    "run b",
    "  now      ",
    "  progress ",
    "  reward   ",
    "  length   ",
    "",
  ]);
  const at = ROWS.findIndex(({ kind, key }) => kind === "intent" && /^round\/4\/gen/.test(key));
  await run.add("intent", ROWS[at]!.key, ROWS[at]!.value);
  await next();
  strictEqual(screen.lines[1], "  now      generate_slab; trainer waits for sampler");
  await run.add("result", ROWS[at]!.key, '{"attempt":1,"ms":1,"output":[]}');
  await next();
  strictEqual(screen.lines[1], "  now      waiting");
  stop.abort();
  strictEqual(await ended, 130);
});

Deno.test("attach only detaches when it is stopped: the run goes on", async () => {
  const { home, clock, run } = await replayed();
  await run.take();
  await run.run(1);
  const { screen, stop, ended, waits } = watch({ home, clock });
  await waits();
  stop.abort();
  strictEqual(await ended, 130);
  ok(screen.written.endsWith("detached; the run continues\n"));
  const { status, requests, owner } = (await home.store.head("b"))!;
  deepStrictEqual([status, requests, owner?.pid], ["running", [], 7]);
});

Deno.test("attach says that a stopped run is interrupted, with its resume, and exits with 130", async () => {
  const { home, clock, run } = await replayed();
  await run.take();
  await run.run(2);
  const { screen, ended, waits, next } = watch({ home, clock });
  await waits();
  await home.store.release("b", run.epoch);
  await next();
  strictEqual(await ended, 130);
  match(
    screen.written,
    /its engine was stopped\nrun b is interrupted\. Resume with: .*resume b.*\n$/,
  );
});

Deno.test("attach says once its lease is over that a run has no living engine, with its resume", async () => {
  const { home, clock, run } = await replayed();
  await run.take();
  await run.run(2);
  const { screen, ended, next } = watch({ home, clock });
  await clock.advance(10_000);
  await next();
  strictEqual(await ended, 130);
  match(
    screen.written,
    /its engine \(process 7 on far\) has crashed, or was cut off from the store\n.*resume b/,
  );
});

Deno.test("attach says of a run that nobody started that no engine did", async () => {
  const { home, clock } = await replayed();
  const { screen, ended } = watch({ home, clock });
  strictEqual(await ended, 130);
  match(screen.written, /no engine has started run b\nrun b is interrupted\. Resume with/);
});

Deno.test("attach prints the error of a run that failed and exits with 3, as of one that was cancelled", async () => {
  for (
    const [status, text] of [["failed", /run b failed: no \\u001b\[31mroom\n/], [
      "cancelled",
      /run b was cancelled/,
    ]] as const
  ) {
    const { home, clock, run } = await replayed();
    await run.take();
    await run.run(1);
    const { screen, ended, waits, next } = watch({ home, clock });
    await waits();
    const error = {
      code: "bad_data",
      cause_kind: "bad_data",
      message: "no \x1b[31mroom",
      facts: {},
    };
    await home.store.finish("b", run.epoch, status, JSON.stringify(error));
    await next();
    strictEqual(await ended, 3);
    match(screen.written, text);
  }
});

Deno.test("attach waits with a run that no engine has taken, says so once, and follows it then", async () => {
  const { home, clock } = await timedHome();
  const fake = await createFakeRun(home, "a", { rounds: 4 });
  const { id: _, ...rest } = fake;
  await home.store.create({ ...rest, id: "b", queue: "night", parent: null });
  const run = new ReplayedRun(home, "b", ROWS);
  const { screen, stop, ended, waits, next, rounds } = watch({ home, clock });
  await waits();
  await next();
  const told = screen.written.split("\n").filter((line) => line.includes("no engine has taken it"));
  strictEqual(told.length, 1);
  match(told[0]!, /run b is in queue 'night'\. Start an engine with: .*serve --queue night/);
  await run.take();
  await run.run(1);
  await next();
  strictEqual(rounds().length, 1);
  stop.abort();
  strictEqual(await ended, 130);
});

Deno.test("attach tells recoveries, and starts a new pace with each engine", async () => {
  const { home, clock, run } = await replayed();
  await run.take();
  await run.run(1);
  await clock.advance(60_000);
  await run.take();
  const recovery = { cause: "engine_lost", action: "load_checkpoint", batches_redone: 2 };
  await run.add("recovery", "round/2/train_policy", recovery);
  await run.run(2);
  const { screen, stop, ended, waits, next, rounds } = watch({ home, clock });
  await waits();
  match(screen.written, /\nrecovered from engine_lost: load_checkpoint, 2 batches redone\n/);
  ok(!rounds().at(-1)!.includes("left")); // The first round of its engine.
  await clock.advance(1000);
  await run.run(3);
  await next();
  match(rounds().at(-1)!, / 1 s left$/);
  stop.abort();
  await ended;
});

Deno.test("attach of a fork begins with the rounds and rewards that it inherited", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 4 });
  await executeFake(home, "a");
  await forkFake(home, "a", { round: 3, id: "b" });
  const { clock } = await timedHome();
  const { screen, ended } = watch({ home, clock, tty: true });
  strictEqual(await ended, 130); // Nobody started it.
  const [curve] = screen.lines.filter((line) => line.startsWith("  reward   "));
  strictEqual([...curve!.slice("  reward   ".length)].length, 3);
  match(screen.written, /round 3\/4/);
});
