import { ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage, graph } from "../../../engine/mod.ts";
import { bench, failures, NoConfig, runOnce, Sampler, soleStage } from "../fixtures.ts";
import { slow } from "../stages.ts";

Deno.test("a failure lets what is in flight finish before the run ends", async () => {
  const bad = defineStage({
    name: "bad",
    version: 1,
    input: z.strictObject({}),
    output: z.string(),
    run: () => {
      throw new TypeError("bug");
    },
  });
  const used = bench();
  const definition = graph(
    "both",
    NoConfig,
    (g) => ({ slow: g.stage(slow, {}), bad: g.stage(bad, {}) }),
  );
  const running = runOnce(used, definition);
  const task = await used.trainer.task("slow");
  while (failures(used.store).length === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  task.finish("late");
  strictEqual((await running).status, "failed");
  ok(used.store.rows("run").some((row) => row.kind === "result" && row.key === "slow"));
});

Deno.test("a drained run is released only after letGo() is over", async () => {
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

Deno.test("a run that another engine claims during letGo() is fenced", async () => {
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
