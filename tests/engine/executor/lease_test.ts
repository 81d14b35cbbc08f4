import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { EngineEvent } from "../../../engine/mod.ts";
import { bench, failures, soleStage, Trainer } from "../fixtures.ts";

Deno.test("a cancel in the store reaches the body and ends the run as cancelled", async () => {
  const used = bench();
  const { definition, built } = soleStage((_, ctx) => ctx.resource(Trainer).run(ctx, null), {
    runs_on: "trainer",
  });
  await used.engine.create(definition, {}, { id: "run" });
  const running = used.engine.execute("run", built);
  const task = await used.trainer.task("sole");
  // From another process: seen when the lease is extended.
  await used.store.request("run", "cancel");
  strictEqual(task.signal.aborted, false);
  await used.clock.advance(1000);
  deepStrictEqual(await running, { status: "cancelled" });
  ok(task.signal.aborted);
  strictEqual((await used.store.head("run"))?.status, "cancelled");
  strictEqual(failures(used.store).length, 0);
});

Deno.test("a lease that another engine has taken stops the run, and its body", async () => {
  const used = bench();
  const { definition, built } = soleStage((_, ctx) => ctx.resource(Trainer).run(ctx, null), {
    runs_on: "trainer",
  });
  await used.engine.create(definition, {}, { id: "run" });
  const running = used.engine.execute("run", built);
  const task = await used.trainer.task("sole");
  const other = { boot_id: "other", host: "h", pid: 1, process_start: "s" };
  await used.store.claim("run", other, { lease_ms: 1000, force: true });
  await used.clock.advance(1000);
  deepStrictEqual(await running, { status: "fenced" });
  ok(task.signal.aborted);
});

Deno.test("a lease that cannot be extended is reported, and the run continues", async () => {
  const events: EngineEvent[] = [];
  const used = bench({ onEvent: (event) => void events.push(event) });
  const { definition, built } = soleStage((_, ctx) => ctx.resource(Trainer).run(ctx, null), {
    runs_on: "trainer",
  });
  await used.engine.create(definition, {}, { id: "run" });
  const running = used.engine.execute("run", built);
  const task = await used.trainer.task("sole");
  used.store.renew = () => Promise.reject(new Error("away"));
  await used.clock.advance(2000);
  const texts = events.flatMap((event) => event.type === "log" ? [event.text] : []);
  deepStrictEqual(texts, Array(2).fill("The lease could not be extended: away"));
  task.finish("done");
  deepStrictEqual(await running, { status: "done", output: "done" });
});

Deno.test("a signal given through the store is seen when the lease is extended", async () => {
  const used = bench();
  const { definition, built } = soleStage((_, ctx) => ctx.signalled("go"));
  await used.engine.create(definition, {}, { id: "run" });
  const running = used.engine.execute("run", built);
  await used.clock.untilSleeping();
  await used.store.signal("run", "go", '"yes"');
  await used.clock.advance(2000);
  deepStrictEqual(await running, { status: "done", output: "yes" });
});
