import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { ManualClock, systemClock } from "../../engine/clock.ts";

Deno.test("ManualClock.advance() wakes sleeps in order, each at its own time", async () => {
  const clock = new ManualClock(1_000);
  const woken: [string, number][] = [];
  const nap = async (name: string, ms: number) => {
    await clock.sleep(ms);
    woken.push([name, clock.now()]);
  };
  const all = [nap("late", 30), nap("early", 10), nap("also early", 10), nap("never", 31)];
  await clock.advance(30);
  deepStrictEqual(woken, [["early", 1_010], ["also early", 1_010], ["late", 1_030]]);
  strictEqual(clock.sleeping, 1);
  strictEqual(clock.monotonic(), 30);
  await clock.advance(1);
  await Promise.all(all);
});

Deno.test("ManualClock.advance() turns a loop of sleeps as real time would", async () => {
  const clock = new ManualClock();
  let turns = 0;
  const loop = (async () => {
    while (turns < 10) {
      await clock.sleep(1_000);
      turns++;
    }
  })();
  await clock.advance(5_500);
  strictEqual(turns, 5);
  await clock.advance(10_000);
  await loop;
});

Deno.test("ManualClock.untilSleeping() settles when enough sleeps wait", async () => {
  const clock = new ManualClock();
  let settled = false;
  const waited = clock.untilSleeping(2).then(() => settled = true);
  const first = clock.sleep(1);
  await Promise.resolve();
  strictEqual(settled, false);
  const second = clock.sleep(1);
  await waited;
  await clock.advance(1);
  await Promise.all([first, second]);
});

for (
  const [name, clock] of [["ManualClock", new ManualClock()], ["systemClock", systemClock]] as const
) {
  Deno.test(`${name}.sleep() ends with the signal's reason, before or during`, async () => {
    const reason = new Error("drained");
    const controller = new AbortController();
    const sleep = clock.sleep(3_600_000, controller.signal);
    controller.abort(reason);
    await rejects(sleep, reason);
    await rejects(clock.sleep(3_600_000, controller.signal), reason);
    if (clock instanceof ManualClock) strictEqual(clock.sleeping, 0);
  });
}

Deno.test("systemClock.sleep() waits at least as long as asked", async () => {
  const start = systemClock.monotonic();
  await systemClock.sleep(5, new AbortController().signal);
  ok(systemClock.monotonic() - start >= 4); // Timers round down by up to a millisecond.
  ok(Math.abs(systemClock.now() - Date.now()) < 1_000);
});
