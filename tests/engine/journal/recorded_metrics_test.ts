import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import {
  defineStage,
  graph,
  InfrastructureError,
  type RecordedMetrics,
  type RecordingContext,
} from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { bench, NoConfig, soleStage } from "../fixtures.ts";

const child = defineStage({
  name: "child",
  version: 1,
  input: z.number(),
  output: z.number(),
  run: (n, ctx: RecordingContext) => {
    ctx.emit({ metrics: { child: n }, version: `v${n}` });
    return n;
  },
});
/**
 * Emits in its body, between steps, in a step, around a checkpoint, and by a child. Its first
 * attempt fails in the end.
 */
const work = defineStage({
  name: "work",
  version: 1,
  input: z.strictObject({ item: z.number() }),
  output: z.number(),
  attempts_max: 3,
  run: async ({ item }, ctx: RecordingContext) => {
    const saved = await ctx.checkpoints();
    if (saved.length === 0) {
      ctx.emit({ metrics: { before_checkpoint: item } });
      await ctx.checkpoint(item);
    }
    ctx.emit({ metrics: { begun: item } });
    await ctx.step("step", ({ emit }) => emit({ metrics: { in_step: item }, version: "step" }));
    await ctx.call(child, item);
    ctx.emit({ metrics: { ended: item } });
    ctx.note("worked", ctx.key, { item });
    if (ctx.attempt === 1) throw new InfrastructureError("on purpose");
    return item;
  },
});
const planned = graph("planned", NoConfig, (g) => {
  const sum = defineStage({
    name: "sum",
    version: 1,
    input: z.array(z.number()),
    output: z.number(),
    run: (values, ctx: RecordingContext) => {
      ctx.emit({ metrics: { sum: values.length, "not/finite": NaN }, log: "x" });
      return values.length;
    },
  });
  const last = g.loop("outer", { times: 2, carry: { sum: g.constant(0) } }, (r) => {
    const inner = r.loop("inner", { times: 2, carry: { sum: r.carried("sum") } }, (i) => {
      const done = i.map(work, i.constant([1, 2]));
      return { sum: i.when(i.constant(true), (b) => b.stage(sum, done), () => i.carried("sum")) };
    });
    return { sum: inner.sum };
  });
  return g.stage(child, last.sum);
});
type Recorded = RecordedMetrics & { key: string };

async function ran(crash_after_appends?: number): Promise<{ rows: Recorded[]; appends: number }> {
  let store = new MemoryStore();
  await bench({ store }).engine.create(planned, {}, { id: "run" });
  for (const crash of [crash_after_appends, undefined]) {
    store = store.restarted({ crash_after_appends: crash });
    const { engine } = bench({ store, backoff: { first_ms: 0, max_ms: 0 } });
    const ended = await engine.execute("run", planned.build({})).catch((error) =>
      ok(error instanceof Crashed)
    );
    if (ended) strictEqual(ended.status, "done");
    if (ended) break;
  }
  const rows = store.rows("run").filter(({ kind }) => kind === "metrics")
    .map(({ key, value }) => ({ key, ...JSON.parse(value) as RecordedMetrics }));
  return { rows, appends: store.appends };
}

const text = ({ at_ms: _, ...row }: Recorded) => JSON.stringify(row);
const sorted = (rows: Recorded[]) => rows.map(text).toSorted();

Deno.test("metrics are recorded with the round and the stage that they are of", async () => {
  const { rows } = await ran();
  const of = (key: string) =>
    rows.filter((row) => row.key === key).map(({ at_ms: _, key: __, ...row }) => row);
  const work = { stage: "work", loop: "outer/1/inner", round: 2, version: null };
  deepStrictEqual(of("outer/1/inner/2/work#2"), [
    { ...work, metrics: { before_checkpoint: 2 } },
    { ...work, metrics: { begun: 2 } },
    { ...work, metrics: { ended: 2 } },
  ]);
  deepStrictEqual(of("outer/1/inner/2/work#2/step#1"), [{
    ...work,
    version: "step",
    metrics: { in_step: 2 },
  }]);
  deepStrictEqual(of("outer/1/inner/2/work#2/child#1"), [
    { ...work, stage: "child", version: "v2", metrics: { child: 2 } },
  ]);
  deepStrictEqual(of("outer/2/inner/1/when/then/sum"), [
    { stage: "sum", loop: "outer/2/inner", round: 1, version: null, metrics: { sum: 2 } },
  ]);
  deepStrictEqual(of("child"), [{
    stage: "child",
    loop: null,
    round: null,
    after: ["outer"],
    version: "v2",
    metrics: { child: 2 },
  }]);
  ok(rows.every(({ at_ms }) => Number.isFinite(at_ms)));
});

Deno.test("a run killed after any append has each of its metrics once", async () => {
  const calm = await ran();
  for (let n = 1; n <= calm.appends; n++) {
    deepStrictEqual(sorted((await ran(n)).rows), sorted(calm.rows), `killed after append ${n}`);
  }
});

Deno.test("metrics of a failed attempt, and numbers not finite, are only shown", async () => {
  const shown: unknown[] = [];
  const { definition, built } = soleStage((_, ctx) => {
    ctx.emit({ metrics: { a: ctx.attempt, b: Infinity } });
    ctx.emit({ metrics: { c: NaN } });
    if (ctx.attempt === 1) throw new InfrastructureError("on purpose");
  });
  const { engine, store } = bench({
    backoff: { first_ms: 0, max_ms: 0 },
    onEvent: (event) => event.type === "metrics" && shown.push(event.metrics.a),
  });
  await engine.create(definition, {}, { id: "run" });
  strictEqual((await engine.execute("run", built)).status, "done");
  deepStrictEqual(shown, [1, undefined, 2, undefined]);
  const rows = store.rows("run").filter(({ kind }) => kind === "metrics").map(({ value }) =>
    JSON.parse(value).metrics
  );
  deepStrictEqual(rows, [{ a: 2 }]);
});
