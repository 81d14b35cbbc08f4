import { deepStrictEqual, match, notDeepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import {
  defineStage,
  type EngineEvent,
  graph,
  type RecordingContext,
} from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { bench, runOnce, soleStage } from "../fixtures.ts";

const child = defineStage({
  name: "child",
  version: 1,
  input: z.number(),
  output: z.number(),
  run: (n, ctx: RecordingContext) => ctx.step("wait", () => n),
});

async function outcomeOf(
  run: (input: unknown, ctx: RecordingContext) => unknown,
): Promise<unknown> {
  const outcome = await runOnce(bench(), soleStage(run).definition);
  return outcome.status === "done" ? outcome.output : (outcome as { error: unknown }).error;
}

Deno.test("steps and calls are keyed by name and occurrence, or by id", async () => {
  const used = bench();
  const { definition } = soleStage(async (_, ctx) => {
    await ctx.step("one", () => 1);
    await ctx.step("one", () => 2);
    await Promise.all([ctx.call(child, 1, { id: "a" }), ctx.call(child, 2, { id: "b/c" })]);
    return null;
  });
  strictEqual((await runOnce(used, definition)).status, "done");
  const keys = used.store.rows("run").filter((row) => row.kind === "result").map((row) => row.key);
  deepStrictEqual(keys.sort(), [
    "sole",
    "sole/child#a",
    "sole/child#a/wait#1",
    "sole/child#b%2Fc",
    "sole/child#b%2Fc/wait#1",
    "sole/one#1",
    "sole/one#2",
  ]);
});

Deno.test("a second call of one name while one is open is ambiguous_key", async () => {
  for (
    const clash of [
      (ctx: RecordingContext) => [ctx.step("one", () => 1), ctx.step("one", () => 2)],
      (ctx: RecordingContext) => [ctx.call(child, 1), ctx.call(child, 2)],
      (ctx: RecordingContext) => [ctx.call(child, 1, { id: "a" }), ctx.call(child, 2)],
      (ctx: RecordingContext) => [ctx.call(child, 1, { id: "a" }), ctx.call(child, 2, { id: "a" })],
    ]
  ) {
    const error = await outcomeOf((_, ctx) => Promise.all(clash(ctx))) as {
      message: string;
      facts: unknown;
    };
    match(error.message, /give each such call its own \{ id \}/);
    strictEqual((error.facts as { error: { code: string } }).error.code, "ambiguous_key");
  }
});

Deno.test("a body that returns with an open call fails instead of losing its result", async () => {
  const error = await outcomeOf((_, ctx) => {
    ctx.call(child, 1);
    return null;
  }) as { message: string };
  match(error.message, /returned with 1 open step\(s\) or call\(s\)/);
});

Deno.test("a stage that holds a slot cannot call stages", async () => {
  const { definition } = soleStage((_, ctx) => ctx.call(child, 1), { runs_on: "trainer" });
  const outcome = await runOnce(bench(), definition);
  ok(outcome.status === "failed");
  match(outcome.error.message, /holds a slot of 'trainer'/);
});

Deno.test("values that JSON cannot hold are refused, not changed", async () => {
  for (const value of [NaN, [undefined], new Map(), () => 1]) {
    const error = await outcomeOf((_, ctx) => ctx.step("one", () => value)) as { message: string };
    match(error.message, /Cannot record/);
  }
});

Deno.test("now() and sleep() are recorded: a restart does not wait again", async () => {
  const used = bench();
  const seen: number[] = [];
  const { definition, built } = soleStage(async (_, ctx) => {
    seen.push(await ctx.now());
    await ctx.sleep(1000);
    await ctx.step("end", () => 1);
    return null;
  });
  await used.engine.create(definition, {}, { id: "run" });
  const dying = used.store.restarted({ crash_after_appends: 2 });
  const first = bench({ store: dying, clock: used.clock }).engine.execute("run", built).catch((
    error,
  ) => error);
  await used.clock.untilSleeping(2); // The body, and the engine's lease.
  await used.clock.advance(600);
  strictEqual(dying.rows("run").filter((row) => row.key === "sole/sleep#1").length, 1);
  const second = bench({ store: dying.restarted(), clock: used.clock }).engine.execute(
    "run",
    built,
  );
  await used.clock.untilSleeping(4);
  await used.clock.advance(400);
  deepStrictEqual(await second, { status: "done", output: null });
  strictEqual(seen.length, 2);
  strictEqual(seen[0], seen[1]);
  ok(await first instanceof Crashed);
});

Deno.test("random() depends on seed, key and name, not on run, attempt or order", async () => {
  const draw = async (seed: number, id: string) => {
    const stage = defineStage({
      name: "draw",
      version: 1,
      input: z.strictObject({ item: z.number() }),
      output: z.array(z.number()),
      run: (_, ctx: RecordingContext) => [ctx.random()(), ctx.random()(), ctx.random("other")()],
    });
    const definition = graph(
      "r",
      z.strictObject({ seed: z.number() }),
      (g) => g.map(stage, g.constant([1, 2])),
    );
    const { engine } = bench();
    await engine.create(definition, { seed }, { id });
    const outcome = await engine.execute(id, definition.build({ seed }));
    return outcome.status === "done" ? outcome.output : outcome;
  };
  const drawn = await draw(1, "a");
  deepStrictEqual(await draw(1, "b"), drawn);
  notDeepStrictEqual(await draw(2, "a"), drawn);
  const flat = (drawn as number[][]).flat();
  strictEqual(new Set(flat).size, 6);
  ok(flat.every((value) => value >= 0 && value < 1));
});

Deno.test("checkpoints survive attempts and engines", async () => {
  const seen: unknown[][] = [];
  const { definition, built } = soleStage(async (_, ctx: RecordingContext) => {
    seen.push(await ctx.checkpoints());
    await ctx.checkpoint({ at: ctx.attempt });
    if (ctx.attempt < 3) throw new TypeError("on purpose");
    return null;
  }, { attempts_max: 3 });
  const used = bench({ backoff: { first_ms: 0, max_ms: 0 } });
  await used.engine.create(definition, {}, { id: "run" });
  const dying = used.store.restarted({ crash_after_appends: 4 });
  const options = { backoff: { first_ms: 0, max_ms: 0 } };
  await bench({ ...options, store: dying }).engine.execute("run", built).catch(() => {});
  const outcome = await bench({ ...options, store: dying.restarted() }).engine.execute(
    "run",
    built,
  );
  strictEqual(outcome.status, "done");
  deepStrictEqual(seen.at(-1), [{ at: 1 }, { at: 2 }]);
});

Deno.test("notes and tallies are recorded with the result, record() immediately", async () => {
  const used = bench({ backoff: { first_ms: 0, max_ms: 0 } });
  const { definition } = soleStage(async (_, ctx: RecordingContext) => {
    ctx.note("version", "v1", { loss: ctx.attempt });
    ctx.tally({ read: ctx.attempt });
    await ctx.record("recovery", "trainer", { attempt: ctx.attempt });
    if (ctx.attempt === 1) throw new TypeError("on purpose");
    return (await ctx.read({ kinds: ["recovery"] })).map((row) => row.value);
  }, { attempts_max: 2 });
  const outcome = await runOnce(used, definition);
  deepStrictEqual(outcome, { status: "done", output: [{ attempt: 1 }, { attempt: 2 }] });
  const rows = used.store.rows("run");
  const notes = rows.filter((row) => row.kind === "note/version");
  deepStrictEqual(notes.map((row) => [row.key, row.value]), [["v1", '{"loss":2}']]);
  strictEqual(rows[rows.indexOf(notes[0]!) + 1]?.kind, "result");
  deepStrictEqual(JSON.parse(rows.find((row) => row.kind === "result")!.value).tally, { read: 2 });
});

Deno.test("signalled() waits for a person, and remembers the answer", async () => {
  const used = bench();
  const { definition, built } = soleStage((_, ctx) => ctx.signalled("approve"));
  await used.engine.create(definition, {}, { id: "run" });
  const started = used.engine.execute("run", built);
  while (!used.store.rows("run").some((row) => row.kind === "intent")) await nextTurn();
  await used.engine.signal("run", "approve", { by: "ada" });
  deepStrictEqual(await started, { status: "done", output: { by: "ada" } });
});

Deno.test("emit() reaches the listener, which cannot end the run by throwing", async () => {
  const events: EngineEvent[] = [];
  const { definition } = soleStage((_, ctx) => {
    ctx.emit({ metrics: { loss: 1 }, log: "text", progress: { done: 1, total: 2 } });
    return null;
  });
  const complained: unknown[] = [];
  const { error } = console;
  console.error = (...args) => complained.push(args);
  const onEvent = (event: EngineEvent) => {
    events.push(event);
    if (event.type === "log") throw new TypeError("on purpose");
  };
  const outcome = await runOnce(bench({ onEvent }), definition).finally(() =>
    console.error = error
  );
  strictEqual(outcome.status, "done");
  strictEqual(complained.length, 1);
  deepStrictEqual(events.map((event) => event.type), [
    "run_started",
    "stage_started",
    "metrics",
    "log",
    "progress",
    "stage_finished",
    "run_ended",
  ]);
});

Deno.test("replay does not run what is recorded: 10,000 steps in one scope", async () => {
  const store = new MemoryStore();
  let ran = 0;
  const { definition, built } = soleStage(async (_, ctx) => {
    for (let n = 0; n < 10_000; n++) await ctx.step("one", () => ++ran);
    return ran;
  });
  await bench({ store }).engine.create(definition, {}, { id: "run" });
  const dying = store.restarted({ crash_after_appends: 9_000 });
  await bench({ store: dying }).engine.execute("run", built).catch(() => {});
  const before = ran;
  ok(before >= 8_999);
  const outcome = await bench({ store: dying.restarted() }).engine.execute("run", built);
  strictEqual(outcome.status, "done");
  ok(ran - before <= 10_000 - 8_999, `${ran - before} steps ran again`);
});

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
