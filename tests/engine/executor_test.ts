import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage, graph, type RecordingContext } from "../../engine/mod.ts";
import { bench, NoConfig, runOnce, Sampler, soleStage } from "./fixtures.ts";

const numbers = (values: number[]) =>
  defineStage({
    name: "numbers",
    version: 1,
    input: z.strictObject({}),
    output: z.array(z.number()),
    run: () => values,
  });
const double = defineStage({
  name: "double",
  version: 1,
  input: z.strictObject({ item: z.number() }),
  output: z.number(),
  run: ({ item }) => item * 2,
});
const upTo = defineStage({
  name: "up_to",
  version: 1,
  input: z.strictObject({ item: z.number() }),
  output: z.array(z.strictObject({ id: z.string(), n: z.number() })),
  run: ({ item }) => Array.from({ length: item }, (_, n) => ({ id: `${item}.${n}`, n })),
});
const read = defineStage({
  name: "read",
  version: 1,
  runs_on: "sampler",
  input: z.strictObject({ item: z.strictObject({ id: z.string(), n: z.number() }) }),
  output: z.string(),
  run: ({ item }, ctx) => ctx.resource(Sampler).run(ctx, { answer: item.id }) as Promise<string>,
});
const add = defineStage({
  name: "add",
  version: 1,
  input: z.strictObject({ to: z.number(), n: z.number() }),
  output: z.number(),
  run: ({ to, n }, ctx: RecordingContext) => {
    ctx.tally({ added: n });
    return to + n;
  },
});

Deno.test("map over flat over map keeps the list's order whatever arrives first", async () => {
  const definition = graph("maps", NoConfig, (g) => g.map(read, g.flat(g.map(upTo, g.stage(numbers([3, 0, 2]), {})))));
  const outcome = await runOnce(bench({ slots: { sampler: 4 } }), definition);
  deepStrictEqual(outcome, { status: "done", output: ["3.0", "3.1", "3.2", "2.0", "2.1"] });
});

Deno.test("map starts an item as soon as it is there, before its source is whole", async () => {
  const held = bench({ slots: { sampler: 2, trainer: 2 } });
  const slow = defineStage({
    ...{ name: "slow", version: 1, runs_on: "sampler", output: z.number() },
    input: z.strictObject({ item: z.number() }),
    run: ({ item }, ctx) => item === 1 ? held.trainer.run(ctx, item) as Promise<number> : item,
  });
  const definition = graph("pipeline", NoConfig, (g) => g.map(double, g.map(slow, g.stage(numbers([1, 2]), {}))));
  const outcome = runOnce(held, definition);
  const first = await held.trainer.task("slow#1");
  while (!held.store.rows("run").some((row) => row.kind === "result" && row.key === "double#2")) await nextTurn();
  first.finish(1);
  deepStrictEqual(await outcome, { status: "done", output: [2, 4] });
});

Deno.test("map has at most as many items in flight as the group has slots", async () => {
  const held = bench({ slots: { sampler: 3 } });
  const definition = graph("bounded", NoConfig, (g) => g.map(read, g.flat(g.map(upTo, g.stage(numbers([20]), {})))));
  strictEqual((await runOnce(held, definition)).status, "done");
  strictEqual(held.sampler.open_max, 3);
});

Deno.test("map refuses items of one id, and items without one", async () => {
  for (const [values, message] of [[[1, 1], /two of its items have the id '1'/], [[null], /without an id/]] as const) {
    const list = defineStage({
      ...{ name: "list", version: 1, input: z.strictObject({}), output: z.array(z.unknown()) },
      run: () => [...values],
    });
    const echo = defineStage({
      ...{ name: "echo", version: 1, input: z.strictObject({ item: z.unknown() }), output: z.unknown() },
      run: ({ item }) => item,
    });
    const outcome = await runOnce(bench(), graph("ids", NoConfig, (g) => g.map(echo, g.stage(list, {}))));
    ok(outcome.status === "failed", JSON.stringify(outcome));
    match(outcome.error.message, message);
    strictEqual(outcome.error.code, "bad_data");
  }
});

Deno.test("loop carries values, counts rounds from 1 and gives the start back for no rounds", async () => {
  const summed = (times: number) =>
    graph("sum", NoConfig, (g) => {
      const start = g.constant(100);
      return g.loop("round", { times, carry: { to: start } }, (r) => ({
        to: r.stage(add, { to: r.carried("to"), n: r.index }),
      })).to;
    });
  deepStrictEqual(await runOnce(bench(), summed(4)), { status: "done", output: 110 });
  deepStrictEqual(await runOnce(bench(), summed(0)), { status: "done", output: 100 });
});

Deno.test("until ends a loop after the round that asks for it", async () => {
  const isEnough = defineStage({
    ...{ name: "is_enough", version: 1, input: z.number(), output: z.boolean() },
    run: (n) => n >= 6,
  });
  const definition = graph(
    "until",
    NoConfig,
    (g) =>
      g.loop("round", { times: 100, carry: { to: g.constant(0) }, until: "enough" }, (r) => {
        const to = r.stage(add, { to: r.carried("to"), n: r.index });
        return { to, enough: r.stage(isEnough, to) };
      }).to,
  );
  const used = bench();
  deepStrictEqual(await runOnce(used, definition), { status: "done", output: 6 });
  strictEqual(used.store.rows("run").filter((row) => row.kind === "round").length, 3);
});

Deno.test("when runs one branch only", async () => {
  const flag = (value: boolean) =>
    defineStage({ name: "flag", version: 1, input: z.strictObject({}), output: z.boolean(), run: () => value });
  for (const value of [true, false]) {
    const used = bench();
    const definition = graph(
      "branches",
      NoConfig,
      (g) =>
        g.when(g.stage(flag(value), {}), (g) => g.stage(add, { to: 1, n: 1 }), (g) => g.stage(add, { to: 5, n: 5 })),
    );
    deepStrictEqual(await runOnce(used, definition), { status: "done", output: value ? 2 : 10 });
    const keys = used.store.rows("run").filter((row) => row.kind === "intent").map((row) => row.key);
    deepStrictEqual(keys, ["flag", value ? "when/then/add" : "when/otherwise/add"]);
  }
});

Deno.test("loops nest, in loops and in branches, and tallies count in every round around", async () => {
  const used = bench();
  const definition = graph(
    "nested",
    NoConfig,
    (g) =>
      g.loop("outer", { times: 2, carry: { to: g.constant(0) } }, (outer) => ({
        to: outer.when(
          outer.constant(true as boolean),
          (g) =>
            g.loop("inner", { times: 3, carry: { to: outer.carried("to") } }, (r) => ({
              to: r.stage(add, { to: r.carried("to"), n: 1 }),
            })).to,
          () => outer.constant(0),
        ),
      })).to,
  );
  deepStrictEqual(await runOnce(used, definition), { status: "done", output: 6 });
  const rounds = used.store.rows("run").filter((row) => row.kind === "round");
  const tallies = rounds.map((row) => [row.key, JSON.parse(row.value).tally.added, JSON.parse(row.value).total.added]);
  deepStrictEqual(tallies, [
    ["outer/1/when/then/inner/1", 1, 1],
    ["outer/1/when/then/inner/2", 1, 2],
    ["outer/1/when/then/inner/3", 1, 3],
    ["outer/1", 3, 3],
    ["outer/2/when/then/inner/1", 1, 1],
    ["outer/2/when/then/inner/2", 1, 2],
    ["outer/2/when/then/inner/3", 1, 3],
    ["outer/2", 3, 6],
  ]);
});

Deno.test("a round's row goes with its last result: one append", async () => {
  const used = bench();
  const appended: string[][] = [];
  const append = used.store.append.bind(used.store);
  used.store.append = (run, epoch, rows) => {
    appended.push(rows.map((row) => `${row.kind} ${row.key}`));
    return append(run, epoch, rows);
  };
  const definition = graph(
    "rows",
    NoConfig,
    (g) =>
      g.loop("round", { times: 1, carry: { to: g.constant([0]) } }, (r) => {
        const doubled = r.map(double, r.stage(numbers([1, 2]), {}));
        return { to: doubled };
      }).to,
  );
  deepStrictEqual(await runOnce(used, definition), { status: "done", output: [2, 4] });
  const closing = appended.find((rows) => rows.includes("round round/1"));
  ok(closing?.includes("result round/1/double#2"));
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
  deepStrictEqual(await used.engine.execute("run", built), { status: "done", output: [long, long] });
});

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
