import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage, graph, type RecordingContext } from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { bench, NoConfig } from "../fixtures.ts";

type Body = (n: number, ctx: RecordingContext) => Promise<number> | number;

/** Adds what `body` says; `eager` or not. */
const counting = (name: string, eager: boolean, body: Body = (n) => n + 1) =>
  defineStage({
    name,
    version: 1,
    input: z.strictObject({ n: z.number() }),
    output: z.number(),
    eager,
    run: ({ n }, ctx: RecordingContext) => body(n, ctx),
  });

/** Three stages, each fed by the one before. */
const chain = (eager: boolean, last = counting("c", eager)) =>
  graph("chain", NoConfig, (g) => {
    const a = g.stage(counting("a", false), { n: 0 });
    return g.stage(last, { n: g.stage(counting("b", eager), { n: a }) });
  });

async function appendsOf(definition: ReturnType<typeof chain>): Promise<number> {
  const { engine, store } = bench({ store: new MemoryStore() });
  await engine.create(definition, {}, { id: "run" });
  deepStrictEqual(await engine.execute("run", definition.build({})), { status: "done", output: 3 });
  return (store as MemoryStore).appends;
}

Deno.test("eager stages share the commit of what they were given; others wait for it", async () => {
  const [waiting, eager] = [await appendsOf(chain(false)), await appendsOf(chain(true))];
  strictEqual(waiting - eager, 2);
});

Deno.test("a body finds its input in the store unless it is eager", async () => {
  for (const eager of [true, false]) {
    const store = new MemoryStore();
    const results = () =>
      store.rows("run").filter(({ kind }) => kind === "result").map(({ key }) => key);
    const seen: Record<string, string[]> = {};
    const look = async (n: number, ctx: RecordingContext) => {
      seen.early = results();
      await ctx.durable();
      seen.durable = results();
      await ctx.step("one", () => void (seen.step = results()));
      return n + 1;
    };
    const definition = chain(true, counting("c", eager, look));
    const { engine } = bench({ store });
    await engine.create(definition, {}, { id: "run" });
    await engine.execute("run", definition.build({}));
    deepStrictEqual(seen.early, eager ? [] : ["a", "b"]);
    deepStrictEqual([seen.durable, seen.step], [["a", "b"], ["a", "b"]]);
  }
});

Deno.test("a crash that loses an eager stage's input loses its result too", async () => {
  const definition = chain(true, counting("c", false));
  const calm = new MemoryStore();
  await bench({ store: calm }).engine.create(definition, {}, { id: "run" });
  await bench({ store: calm }).engine.execute("run", definition.build({}));
  ok(calm.appends >= 3);
  for (let n = 1; n < calm.appends; n++) {
    const store = new MemoryStore();
    await bench({ store }).engine.create(definition, {}, { id: "run" });
    const dying = store.restarted({ crash_after_appends: n });
    await rejects(bench({ store: dying }).engine.execute("run", definition.build({})), Crashed);
    const keys = dying.rows("run").filter(({ kind }) => kind === "result").map(({ key }) => key);
    deepStrictEqual(keys, ["a", "b", "c"].slice(0, keys.length));
    const resumed = await bench({ store: dying.restarted() }).engine.execute(
      "run",
      definition.build({}),
    );
    deepStrictEqual(resumed, { status: "done", output: 3 });
  }
});
