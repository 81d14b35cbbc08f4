import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage, graph } from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { bench, NoConfig } from "../fixtures.ts";

Deno.test("replay reads the last closed round and what follows, however long the run", async () => {
  const add = defineStage({
    name: "add",
    version: 1,
    input: z.strictObject({ to: z.number() }),
    output: z.number(),
    run: async ({ to }, ctx) => to + await ctx.step("one", () => 1),
  });
  const readAfter = async (times: number) => {
    const definition = graph(
      "history",
      NoConfig,
      (g) =>
        g.loop(
          "round",
          { times: 1000, carry: { to: g.constant(0) } },
          (r) => ({ to: r.stage(add, { to: r.carried("to") }) }),
        )
          .to,
    );
    const store = new MemoryStore();
    await bench({ store }).engine.create(definition, {}, { id: "run" });
    // Two commits a round: the step, then the result with the round's row.
    const dying = store.restarted({ crash_after_appends: 2 * times + 1 });
    await rejects(bench({ store: dying }).engine.execute("run", definition.build({})), Crashed);
    const resumed = dying.restarted({ crash_after_appends: 1 });
    let rows = 0;
    const read = resumed.read.bind(resumed);
    resumed.read = async (run, query) => {
      const found = await read(run, query);
      rows += found.length;
      return found;
    };
    await rejects(bench({ store: resumed }).engine.execute("run", definition.build({})), Crashed);
    return { rows, closed: resumed.rows("run").filter(({ kind }) => kind === "round").length };
  };
  const [short, long] = [await readAfter(5), await readAfter(200)];
  deepStrictEqual([short.closed, long.closed], [6, 201]);
  strictEqual(long.rows, short.rows);
  ok(short.rows <= 6, `${short.rows} rows`);
});
