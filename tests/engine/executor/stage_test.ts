import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import {
  type Context,
  defineStage,
  type EngineEvent,
  type RecordingContext,
} from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { AT_ONCE, bench, failures, runOnce, soleStage } from "../fixtures.ts";

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("a body that catches a failure takes the same way on replay", async () => {
  let starts = 0;
  const broken = defineStage({
    name: "broken",
    version: 1,
    input: z.null(),
    output: z.null(),
    run: () => {
      starts++;
      throw new TypeError("bug");
    },
  });
  const { definition, built } = soleStage(async (_, ctx) => {
    const way = await ctx.call(broken, null).then(() => "straight", () => "round");
    await ctx.step("after", () => 1);
    return way;
  });
  const store = new MemoryStore();
  await bench({ store }).engine.create(definition, {}, { id: "run" });
  const dying = store.restarted({ crash_after_appends: 2 });
  await rejects(bench({ store: dying }).engine.execute("run", built), Crashed);
  const outcome = await bench({ store: dying.restarted() }).engine.execute("run", built);
  deepStrictEqual(outcome, { status: "done", output: "round" });
  strictEqual(starts, 1);
});

Deno.test("timeout_ms ends an attempt; its late result is dropped and counted", async () => {
  const events: EngineEvent[] = [];
  const used = bench({ ...AT_ONCE, onEvent: (event) => void events.push(event) });
  let finish = (_: unknown) => {};
  const { definition } = soleStage(
    (_, ctx) => ctx.attempt === 1 ? new Promise((resolve) => finish = resolve) : "second",
    {
      timeout_ms: 1000,
    },
  );
  const running = runOnce(used, definition);
  await used.clock.untilSleeping(2);
  await used.clock.advance(999);
  strictEqual(failures(used.store).length, 0);
  await used.clock.advance(1);
  finish("first");
  deepStrictEqual(await running, { status: "done", output: "second" });
  strictEqual(failures(used.store).length, 1);
  ok(events.some((event) => event.type === "late_result" && event.count === 1));
});

Deno.test("no_progress_ms is reset by progress and ends a silent attempt", async () => {
  const used = bench();
  let context: Context | undefined;
  const { definition } = soleStage((_, ctx) => {
    context = ctx;
    return new Promise((_, reject) =>
      ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason))
    );
  }, { no_progress_ms: 1000, attempts_max: 1 });
  const running = runOnce(used, definition);
  await used.clock.untilSleeping(2);
  for (let beat = 0; beat < 3; beat++) {
    await used.clock.advance(900);
    context!.emit({ progress: { done: beat } });
  }
  strictEqual(failures(used.store).length, 0);
  await used.clock.advance(1000);
  const outcome = await running;
  ok(outcome.status === "failed");
  strictEqual((outcome.error.facts.error as { code: string }).code, "no_progress");
});

Deno.test("a result is seen only when it is durable", async () => {
  const used = bench();
  const append = used.store.append.bind(used.store);
  let durable = false;
  used.store.append = async (run, epoch, rows) => {
    await nextTurn();
    const appended = await append(run, epoch, rows);
    durable ||= rows.some((row) => row.key === "sole/one#1");
    return appended;
  };
  const { definition } = soleStage(async (_, ctx) => {
    await ctx.step("one", () => 1);
    return durable;
  });
  deepStrictEqual(await runOnce(used, definition), { status: "done", output: true });
});

Deno.test("values over 64 KiB move to artifacts and come back", async () => {
  const long = "x".repeat(70_000);
  const used = bench();
  const { definition, built } = soleStage(async (_, ctx: RecordingContext) => {
    await ctx.checkpoint(long);
    return [await ctx.step("one", () => long), ...await ctx.checkpoints()];
  });
  deepStrictEqual(await runOnce(used, definition), { status: "done", output: [long, long] });
  ok(used.store.rows("run").every((row) => row.value.length < 1000));
  deepStrictEqual(await used.engine.execute("run", built), {
    status: "done",
    output: [long, long],
  });
});
