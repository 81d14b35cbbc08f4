import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import {
  type Context,
  defineStage,
  type EngineEvent,
  graph,
  InfrastructureError,
  OutOfMemoryError,
  WorkerLostError,
} from "../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../testing/mod.ts";
import { bench, NoConfig, runOnce, Sampler, soleStage, Trainer } from "./fixtures.ts";

const AT_ONCE = { backoff: { first_ms: 0, max_ms: 0 } };

function failures(store: MemoryStore): { attempt: number; next_ms: number | null }[] {
  return store.rows("run").filter((row) => row.kind === "failure").map((row) => JSON.parse(row.value));
}

Deno.test("budgets are by cause: 3 for the machine, 1 for user code, and each its own", async () => {
  const outOfMemory = () => new OutOfMemoryError("no memory");
  const lost = () => new InfrastructureError("no disk");
  const taken = () => new WorkerLostError("preempted", {}, { counted: false });
  const cases: { errors: (() => Error)[]; attempts: number; attempts_max?: number | { user_code: number } }[] = [
    { errors: [lost, lost, lost, lost], attempts: 3 },
    { errors: [() => new TypeError("bug")], attempts: 1 },
    { errors: [() => new TypeError("bug"), () => new TypeError("bug")], attempts: 2, attempts_max: { user_code: 2 } },
    { errors: [lost, outOfMemory, lost, outOfMemory, lost], attempts: 5 },
    { errors: [lost, lost, lost], attempts: 1, attempts_max: 1 },
    { errors: [taken, lost, taken, taken, lost, taken, lost], attempts: 7 },
    { errors: Array.from({ length: 60 }, () => taken), attempts: 50 }, // Not for ever.
  ];
  for (const { errors, attempts, attempts_max } of cases) {
    const used = bench(AT_ONCE);
    let starts = 0;
    const { definition } = soleStage(() => {
      throw errors[starts++]!();
    }, { attempts_max });
    const outcome = await runOnce(used, definition);
    ok(outcome.status === "failed");
    strictEqual(outcome.error.code, "stage_failed");
    strictEqual(starts, attempts);
    strictEqual(failures(used.store).at(-1)?.next_ms, null);
  }
});

Deno.test("a retry waits as recorded, with backoff, and a restart does not wait or count anew", async () => {
  const used = bench({ backoff: { first_ms: 1000, max_ms: 60_000 } });
  const starts: number[] = [];
  const { definition, built } = soleStage((_, ctx) => {
    starts.push(ctx.attempt);
    throw new InfrastructureError("again");
  }, { runs_on: "sampler" });
  await used.engine.create(definition, {}, { id: "run" });
  const dying = used.store.restarted();
  const begun = used.clock.now();
  const first = bench({ store: dying, clock: used.clock }).engine.execute("run", built);
  await used.clock.untilSleeping(2);
  const next_ms = failures(dying)[0]!.next_ms!;
  ok(next_ms - begun >= 250 && next_ms - begun <= 500, `${next_ms - begun} ms`);
  const second = bench({ store: dying.restarted(), clock: used.clock }).engine.execute("run", built);
  await used.clock.advance(120_000);
  const outcome = await second;
  strictEqual(outcome.status, "failed");
  strictEqual((await first).status, "fenced");
  deepStrictEqual(starts, [1, 2, 3]);
});

Deno.test("resume of a failed run opens one new budget for what failed; completed children stay", async () => {
  const used = bench(AT_ONCE);
  let mended = false;
  const ran: string[] = [];
  const part = defineStage({
    ...{ name: "part", version: 1, input: z.string(), output: z.string() },
    run: (name) => {
      ran.push(name);
      if (name === "broken" && !mended) throw new TypeError("bug");
      return name;
    },
  });
  const { definition, built } = soleStage(async (
    _,
    ctx,
  ) => [await ctx.call(part, "good"), await ctx.call(part, "broken")]);
  strictEqual((await runOnce(used, definition)).status, "failed");
  deepStrictEqual(ran, ["good", "broken"]);
  strictEqual((await used.engine.execute("run", built)).status, "failed");
  deepStrictEqual(ran, ["good", "broken", "broken"]);
  mended = true;
  deepStrictEqual(await used.engine.execute("run", built), { status: "done", output: ["good", "broken"] });
  deepStrictEqual(ran, ["good", "broken", "broken", "broken"]);
});

Deno.test("a failure is a recorded result: a body that catches it takes the same way on replay", async () => {
  let starts = 0;
  const broken = defineStage({
    ...{ name: "broken", version: 1, input: z.null(), output: z.null() },
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
    return new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
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

Deno.test("cancel reaches a running body through its signal and ends the run as cancelled", async () => {
  const used = bench();
  const { definition, built } = soleStage((_, ctx) => ctx.resource(Trainer).run(ctx, null), { runs_on: "trainer" });
  await used.engine.create(definition, {}, { id: "run" });
  const running = used.engine.execute("run", built);
  const task = await used.trainer.task("sole");
  await used.store.request("run", "cancel"); // From another process: seen when the lease is extended.
  strictEqual(task.signal.aborted, false);
  await used.clock.advance(1000);
  deepStrictEqual(await running, { status: "cancelled" });
  ok(task.signal.aborted);
  strictEqual((await used.store.head("run"))?.status, "cancelled");
  strictEqual(failures(used.store).length, 0);
});

const slow = defineStage({
  name: "slow",
  version: 1,
  runs_on: "trainer",
  input: z.strictObject({}),
  output: z.string(),
  run: (_, ctx) => ctx.resource(Trainer).run(ctx, null) as Promise<string>,
});
const after = defineStage({
  name: "after",
  version: 1,
  runs_on: "sampler",
  input: z.strictObject({ slow: z.string() }),
  output: z.string(),
  run: async ({ slow }, ctx) => {
    await ctx.resource(Sampler).run(ctx, {});
    return `${slow}!`;
  },
});
const chain = graph("chain", NoConfig, (g) => g.stage(after, { slow: g.stage(slow, {}) }));

Deno.test("drain: what is in flight finishes and is recorded, nothing new starts, the run can be resumed", async () => {
  const used = bench();
  const drain = new AbortController();
  await used.engine.create(chain, {}, { id: "run" });
  const running = used.engine.execute("run", chain.build({}), { drain: drain.signal });
  const task = await used.trainer.task("slow");
  drain.abort();
  strictEqual(task.signal.aborted, false);
  task.finish("done");
  deepStrictEqual(await running, { status: "interrupted" });
  deepStrictEqual(used.store.rows("run").filter((row) => row.kind === "result").map((row) => row.key), ["slow"]);
  deepStrictEqual(used.sampler.started, []);
  deepStrictEqual(await used.engine.execute("run", chain.build({})), { status: "done", output: "done!" });
  deepStrictEqual(used.trainer.started, ["slow"]);
});

Deno.test("drain stops a body between two steps, and a caller between two calls", async () => {
  const drain = new AbortController();
  const ran: number[] = [];
  const steps = defineStage({
    ...{ name: "steps", version: 1, input: z.null(), output: z.number() },
    run: async (_, ctx) => {
      for (let n = 0; n < 5; n++) {
        await ctx.step("one", () => {
          if (n === 2) drain.abort();
          return ran.push(n);
        });
      }
      return ran.length;
    },
  });
  const { definition, built } = soleStage(async (_, ctx) => [await ctx.call(steps, null), await ctx.call(steps, null)]);
  const used = bench();
  await used.engine.create(definition, {}, { id: "run" });
  const outcome = await used.engine.execute("run", built, { drain: drain.signal });
  deepStrictEqual(outcome, { status: "interrupted" });
  deepStrictEqual(ran, [0, 1, 2]);
  strictEqual((await used.engine.execute("run", built)).status, "done");
  deepStrictEqual(ran.slice(0, 5), [0, 1, 2, 3, 4]);
  strictEqual(ran.length, 10);
});

Deno.test("a failure lets what is in flight finish before the run ends", async () => {
  const bad = defineStage({
    ...{ name: "bad", version: 1, input: z.strictObject({}), output: z.string() },
    run: () => {
      throw new TypeError("bug");
    },
  });
  const used = bench();
  const definition = graph("both", NoConfig, (g) => ({ slow: g.stage(slow, {}), bad: g.stage(bad, {}) }));
  const running = runOnce(used, definition);
  const task = await used.trainer.task("slow");
  while (failures(used.store).length === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  task.finish("late");
  strictEqual((await running).status, "failed");
  ok(used.store.rows("run").some((row) => row.kind === "result" && row.key === "slow"));
});

Deno.test("an engine that was superseded aborts, writes nothing more and says so", async () => {
  const used = bench();
  await used.engine.create(chain, {}, { id: "run" });
  const running = used.engine.execute("run", chain.build({}));
  const task = await used.trainer.task("slow");
  const second = bench({ store: used.store.restarted(), clock: used.clock });
  const taken = second.engine.execute("run", chain.build({}));
  (await second.trainer.task("slow")).finish("new");
  deepStrictEqual(await taken, { status: "done", output: "new!" });
  task.finish("old");
  deepStrictEqual(await running, { status: "fenced" });
  const results = used.store.rows("run").filter((row) => row.kind === "result" && row.key === "slow");
  deepStrictEqual(results.map((row) => row.epoch), [2]);
});

Deno.test("audit sees totals when a round closes; a complaint fails the run in that round", async () => {
  const count = defineStage({
    ...{ name: "count", version: 1, input: z.strictObject({ n: z.number() }), output: z.number() },
    run: ({ n }, ctx) => {
      ctx.tally({ read: 2, trained: n === 3 ? 1 : 2 });
      return n;
    },
  });
  const used = bench();
  const seen: Record<string, number>[] = [];
  const definition = graph("audited", NoConfig, (g) =>
    g.loop("round", {
      times: 5,
      carry: { n: g.constant(0) },
      audit: ({ tally, carried, round }) => {
        seen.push({ ...tally, n: carried.n, round });
        return tally.read === tally.trained ? null : `read ${tally.read}, trained ${tally.trained}`;
      },
    }, (r) => ({ n: r.stage(count, { n: r.index }) })).n);
  const outcome = await runOnce(used, definition);
  ok(outcome.status === "failed");
  strictEqual(outcome.error.code, "audit");
  match(outcome.error.message, /round\/3.*read 6, trained 5/);
  deepStrictEqual(seen.slice(0, 2), [{ read: 2, trained: 2, n: 1, round: 1 }, { read: 4, trained: 4, n: 2, round: 2 }]);
  strictEqual(used.store.rows("run").filter((row) => row.kind === "round").length, 2);
});

Deno.test("a drained run is given back only after what its session lets go of is over", async () => {
  const used = bench();
  const drain = new AbortController();
  const { definition, built } = soleStage((input, ctx) => ctx.resource(Sampler).run(ctx, input), {
    runs_on: "sampler",
  });
  await used.engine.create(definition, {}, { id: "run" });
  drain.abort();
  let held: unknown = "not called";
  const letGo = async () => void (held = (await used.store.head("run"))?.owner);
  const outcome = await used.engine.execute("run", built, { drain: drain.signal, letGo });
  strictEqual(outcome.status, "interrupted");
  ok(held !== null && typeof held === "object", "the run was given back too early");
  strictEqual((await used.store.head("run"))?.owner, null);
});

Deno.test("a run that another engine claims while this one lets go of it is fenced, not interrupted", async () => {
  const used = bench();
  const drain = new AbortController();
  const { definition, built } = soleStage(() => null);
  await used.engine.create(definition, {}, { id: "run" });
  drain.abort();
  const other = { boot_id: "other", host: "h", pid: 1, process_start: "s" };
  const letGo = async () => {
    await used.store.claim("run", other, { lease_ms: 1000, force: true });
    await used.clock.advance(2000); // The next look at the lease tells.
  };
  const outcome = await used.engine.execute("run", built, { drain: drain.signal, letGo });
  strictEqual(outcome.status, "fenced");
  strictEqual((await used.store.head("run"))?.owner?.boot_id, "other");
});

Deno.test("a run that its owner ends while this engine is about to take it answers how it ended", async () => {
  const { definition, built } = soleStage(() => "done");
  const used = bench();
  await used.engine.create(definition, {}, { id: "run" });
  class Late extends MemoryStore {
    override async claim(...claim: Parameters<MemoryStore["claim"]>): ReturnType<MemoryStore["claim"]> {
      await bench({ store: used.store }).engine.execute("run", built);
      return await used.store.claim(...claim);
    }
    override head = (run: string) => used.store.head(run);
    override read = (...query: Parameters<MemoryStore["read"]>) => used.store.read(...query);
  }
  deepStrictEqual(await bench({ store: new Late() }).engine.execute("run", built), { status: "done", output: "done" });
});
