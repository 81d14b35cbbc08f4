import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage } from "../../../engine/mod.ts";
import { bench, soleStage } from "../fixtures.ts";
import { chain } from "../stages.ts";

Deno.test("drain records what is in flight, starts nothing, and can be resumed", async () => {
  const used = bench();
  const drain = new AbortController();
  await used.engine.create(chain, {}, { id: "run" });
  const running = used.engine.execute("run", chain.build({}), { drain: drain.signal });
  const task = await used.trainer.task("slow");
  drain.abort();
  strictEqual(task.signal.aborted, false);
  task.finish("done");
  deepStrictEqual(await running, { status: "interrupted" });
  deepStrictEqual(
    used.store.rows("run").filter((row) => row.kind === "result").map((row) => row.key),
    ["slow"],
  );
  deepStrictEqual(used.sampler.started, []);
  deepStrictEqual(await used.engine.execute("run", chain.build({})), {
    status: "done",
    output: "done!",
  });
  deepStrictEqual(used.trainer.started, ["slow"]);
});

Deno.test("drain stops a body between two steps, and a caller between two calls", async () => {
  const drain = new AbortController();
  const ran: number[] = [];
  const steps = defineStage({
    name: "steps",
    version: 1,
    input: z.null(),
    output: z.number(),
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
  const { definition, built } = soleStage(async (
    _,
    ctx,
  ) => [await ctx.call(steps, null), await ctx.call(steps, null)]);
  const used = bench();
  await used.engine.create(definition, {}, { id: "run" });
  const outcome = await used.engine.execute("run", built, { drain: drain.signal });
  deepStrictEqual(outcome, { status: "interrupted" });
  deepStrictEqual(ran, [0, 1, 2]);
  strictEqual((await used.engine.execute("run", built)).status, "done");
  deepStrictEqual(ran.slice(0, 5), [0, 1, 2, 3, 4]);
  strictEqual(ran.length, 10);
});
