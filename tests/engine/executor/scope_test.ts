import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage, graph } from "../../../engine/mod.ts";
import { bench, NoConfig, runOnce, Sampler } from "../fixtures.ts";
import { add, double, numbers } from "../stages.ts";

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

Deno.test("map over flat over map keeps the list's order whatever arrives first", async () => {
  const definition = graph(
    "maps",
    NoConfig,
    (g) => g.map(read, g.flat(g.map(upTo, g.stage(numbers([3, 0, 2]), {})))),
  );
  const outcome = await runOnce(bench({ slots: { sampler: 4 } }), definition);
  deepStrictEqual(outcome, { status: "done", output: ["3.0", "3.1", "3.2", "2.0", "2.1"] });
});

Deno.test("map starts an item as soon as it is there, before its source is whole", async () => {
  const held = bench({ slots: { sampler: 2, trainer: 2 } });
  const slow = defineStage({
    name: "slow",
    version: 1,
    runs_on: "sampler",
    output: z.number(),
    input: z.strictObject({ item: z.number() }),
    run: ({ item }, ctx) => item === 1 ? held.trainer.run(ctx, item) as Promise<number> : item,
  });
  const definition = graph(
    "pipeline",
    NoConfig,
    (g) => g.map(double, g.map(slow, g.stage(numbers([1, 2]), {}))),
  );
  const outcome = runOnce(held, definition);
  const first = await held.trainer.task("slow#1");
  while (!held.store.rows("run").some((row) => row.kind === "result" && row.key === "double#2")) {
    await nextTurn();
  }
  first.finish(1);
  deepStrictEqual(await outcome, { status: "done", output: [2, 4] });
});

Deno.test("map has at most as many items in flight as the group has slots", async () => {
  const held = bench({ slots: { sampler: 3 } });
  const definition = graph(
    "bounded",
    NoConfig,
    (g) => g.map(read, g.flat(g.map(upTo, g.stage(numbers([20]), {})))),
  );
  strictEqual((await runOnce(held, definition)).status, "done");
  strictEqual(held.sampler.open_max, 3);
});

Deno.test("map refuses items of one id, and items without one", async () => {
  for (
    const [values, message] of [[[1, 1], /two of its items have the id '1'/], [
      [null],
      /without an id/,
    ]] as const
  ) {
    const list = defineStage({
      name: "list",
      version: 1,
      input: z.strictObject({}),
      output: z.array(z.unknown()),
      run: () => [...values],
    });
    const echo = defineStage({
      name: "echo",
      version: 1,
      input: z.strictObject({ item: z.unknown() }),
      output: z.unknown(),
      run: ({ item }) => item,
    });
    const outcome = await runOnce(
      bench(),
      graph("ids", NoConfig, (g) => g.map(echo, g.stage(list, {}))),
    );
    ok(outcome.status === "failed", JSON.stringify(outcome));
    match(outcome.error.message, message);
    strictEqual(outcome.error.code, "bad_data");
  }
});

Deno.test("when runs one branch only", async () => {
  const flag = (value: boolean) =>
    defineStage({
      name: "flag",
      version: 1,
      input: z.strictObject({}),
      output: z.boolean(),
      run: () => value,
    });
  for (const value of [true, false]) {
    const used = bench();
    const definition = graph(
      "branches",
      NoConfig,
      (g) =>
        g.when(
          g.stage(flag(value), {}),
          (g) => g.stage(add, { to: 1, n: 1 }),
          (g) => g.stage(add, { to: 5, n: 5 }),
        ),
    );
    deepStrictEqual(await runOnce(used, definition), { status: "done", output: value ? 2 : 10 });
    const keys = used.store.rows("run").filter((row) => row.kind === "intent").map((row) =>
      row.key
    );
    deepStrictEqual(keys, ["flag", value ? "when/then/add" : "when/otherwise/add"]);
  }
});

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
