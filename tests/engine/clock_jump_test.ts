import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { InfrastructureError, ManualClock } from "../../engine/mod.ts";
import type { MemoryStore } from "../../testing/mod.ts";
import { bench, runOnce, soleStage } from "./fixtures.ts";

const HOUR_MS = 3_600_000;
const JUMPS = [HOUR_MS, -HOUR_MS, -24 * HOUR_MS];

/** Lets time go on in steps until the promise settles; how long that took. */
async function passing(clock: ManualClock, promise: Promise<unknown>): Promise<number> {
  const began = clock.monotonic();
  let over = false;
  promise.finally(() => over = true).catch(() => {});
  for (let i = 0; i < 200 && !over; i++) await clock.advance(250);
  ok(over, "it did not end within 50 s");
  return clock.monotonic() - began;
}

/**
 * Begins a run, drops its engine when it sleeps, sets the clock, and goes on with another engine:
 * how long that took.
 */
async function resumedAfter(
  jump_ms: number,
  { stage, store_ms }: { stage: ReturnType<typeof soleStage>; store_ms: number },
): Promise<{ store: MemoryStore; ms: number; outcome: unknown }> {
  const used = bench({ backoff: { first_ms: 1000, max_ms: 1000 } });
  await used.engine.create(stage.definition, {}, { id: "run" });
  used.engine.execute("run", stage.built).catch(() => {});
  await used.clock.untilSleeping(2);
  await used.clock.advance(store_ms);
  used.clock.jump(jump_ms);
  const store = used.store.restarted();
  const again = bench({ store, clock: used.clock, backoff: { first_ms: 1000, max_ms: 1000 } });
  const running = again.engine.execute("run", stage.built);
  const ms = await passing(used.clock, running);
  return { store, ms, outcome: await running };
}

Deno.test("a sleep that a restart resumes is never longer than asked for", async () => {
  const stage = soleStage(async (_, ctx) => (await ctx.sleep(10_000), "slept"));
  for (const jump_ms of [0, ...JUMPS]) {
    const { ms, outcome } = await resumedAfter(jump_ms, { stage, store_ms: 4000 });
    deepStrictEqual(outcome, { status: "done", output: "slept" });
    ok(ms <= 10_250, `${jump_ms}: ${ms} ms`);
    if (jump_ms === 0) strictEqual(ms, 6000);
  }
});

Deno.test("a retry waits no longer than its backoff, wherever the wall clock went", async () => {
  const stage = soleStage((_, ctx) => {
    if (ctx.attempt === 1) throw new InfrastructureError("on purpose");
    return ctx.attempt;
  });
  for (const jump_ms of [0, ...JUMPS]) {
    const { ms, outcome } = await resumedAfter(jump_ms, { stage, store_ms: 0 });
    deepStrictEqual(outcome, { status: "done", output: 2 });
    ok(ms <= 1250, `${jump_ms}: ${ms} ms`);
  }
});

Deno.test("timeouts, sleeps and retries do not notice that the wall clock was set", async () => {
  for (const jump_ms of JUMPS) {
    const used = bench({ backoff: { first_ms: 1000, max_ms: 1000 } });
    const at: Record<string, number> = {};
    const { definition } = soleStage(async (_, ctx) => {
      at[`start ${ctx.attempt}`] = used.clock.monotonic();
      if (ctx.attempt === 1) await new Promise(() => {});
      await ctx.sleep(2000);
      at.slept = used.clock.monotonic();
      return "done";
    }, { timeout_ms: 3000 });
    const running = runOnce(used, definition);
    await used.clock.untilSleeping(2);
    used.clock.jump(jump_ms);
    await used.clock.advance(3000);
    used.clock.jump(jump_ms);
    await passing(used.clock, running);
    deepStrictEqual(await running, { status: "done", output: "done" });
    const wait = at["start 2"]! - 3000;
    // Up to 5 s for a body that hangs.
    ok(wait >= 500 && wait <= 6000, `attempt 2 came ${wait} ms after the time-out`);
    strictEqual(at.slept! - at["start 2"]!, 2000);
    const seqs = used.store.rows("run").map(({ seq }) => seq);
    deepStrictEqual(seqs, seqs.map((_, place) => place + 1));
  }
});
