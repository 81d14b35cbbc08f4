import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage, graph, ReplayDriftError, type ReplayPolicy } from "../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../testing/mod.ts";
import { bench, NoConfig } from "./fixtures.ts";

type Sides = { input: number; steps: string[]; replay?: ReplayPolicy; ran?: string[] };

/** A body that ends only in its second engine, so that its children are recorded and it is not. */
function drifting({ input, steps, replay, ran = [] }: Sides) {
  const stage = defineStage({
    ...{
      name: "work",
      version: 1,
      replay,
      input: z.strictObject({ n: z.number(), m: z.string() }),
      output: z.number(),
    },
    run: async ({ n }, ctx) => {
      for (const name of steps) await ctx.step(name, () => void ran.push(name));
      return n;
    },
  });
  return graph("drift", NoConfig, (g) => g.stage(stage, { n: input, m: "same" }));
}

/** Runs `first` until it crashes after so many appends, then `second` on the same journal. */
async function replayed(first: Sides, second: Sides, appends: number) {
  const store = new MemoryStore();
  const before = drifting(first);
  await bench({ store }).engine.create(before, {}, { id: "run" });
  const dying = store.restarted({ crash_after_appends: appends });
  await rejects(bench({ store: dying }).engine.execute("run", before.build({})), Crashed);
  return await bench({ store: dying.restarted() }).engine.execute("run", drifting(second).build({}));
}

const FIRST = { input: 1, steps: ["a", "b"] };

Deno.test("another input is replay_drift and shows the difference", async () => {
  const outcome = await replayed(FIRST, { ...FIRST, input: 2 }, 2);
  ok(outcome.status === "failed");
  strictEqual(outcome.error.code, "replay_drift");
  deepStrictEqual(outcome.error.facts.difference, ["- n: 1", "+ n: 2"]);
});

Deno.test("replay: rerun drops what was recorded, accept keeps it", async () => {
  const rerun: string[] = [];
  const again = await replayed(FIRST, { ...FIRST, input: 2, replay: "rerun", ran: rerun }, 2);
  deepStrictEqual(again, { status: "done", output: 2 });
  deepStrictEqual(rerun, ["a", "b"]);
  const accept: string[] = [];
  const kept = await replayed(FIRST, { ...FIRST, input: 2, replay: "accept", ran: accept }, 2);
  deepStrictEqual(kept, { status: "done", output: 2 });
  deepStrictEqual(accept, []);
});

Deno.test("a recorded child that is not asked for is replay_drift, unless the policy says otherwise", async () => {
  const outcome = await replayed(FIRST, { ...FIRST, steps: ["a"] }, 2);
  ok(outcome.status === "failed");
  match(outcome.error.message, /- work\/b#1 \(recorded, not asked for\)/);
  for (const replay of ["accept", "rerun"] as const) {
    deepStrictEqual(await replayed(FIRST, { ...FIRST, steps: ["a"], replay }, 2), { status: "done", output: 1 });
  }
});

Deno.test("another graph is refused with its difference, before the run is taken", async () => {
  const one = drifting(FIRST);
  const other = graph("drift", NoConfig, (g) => g.constant(1));
  const used = bench();
  await used.engine.create(one, {}, { id: "run" });
  await rejects(used.engine.execute("run", other.build({})), (error: Error) => {
    ok(error instanceof ReplayDriftError);
    match(error.message, /- work stage work@1 <-\n.*\+ output <- constant/s);
    return true;
  });
  strictEqual((await used.store.head("run"))?.epoch, 0);
});
