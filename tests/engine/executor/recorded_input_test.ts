import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { defineStage, graph, prefixOf, ReplayDriftError } from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { artifacts, bench } from "../fixtures.ts";

const Block = z.strictObject({
  rate: z.number(),
  inner: z.strictObject({ on: z.boolean() }),
  extra: z.json().optional(),
});
const Config = z.strictObject({
  block: Block,
  list: z.array(Block),
  spread: z.strictObject({ every: z.number(), often: z.json().optional() }),
});
type Config = z.infer<typeof Config>;

/**
 * A graph whose stage is given a block of the configuration whole, a list of them, one spread out,
 * and rows of `row_characters`: larger inputs are recorded as hashes only.
 */
function withRows(row_characters: number, wired: { every?: number } = {}) {
  const stage = defineStage({
    name: "work",
    version: 1,
    input: z.strictObject({
      rows: z.string(),
      block: Block,
      list: z.array(Block),
      ...Config.shape.spread.shape,
    }),
    output: z.number(),
    run: async ({ block }, ctx) => {
      await ctx.step("first", () => 1);
      return await ctx.step("second", () => block.rate);
    },
  });
  return graph("rows", Config, (g, { block, list, spread }) => {
    const worked = g.stage(
      stage,
      { rows: "r".repeat(row_characters), block, list, ...spread, ...wired } as never,
    );
    return g.loop(
      "round",
      { times: 1, carry: { worked } },
      (r) => ({ worked: r.carried("worked") }),
    ).worked;
  });
}

const BLOCK = { rate: 2, inner: { on: true } };
const CONFIG = { block: BLOCK, list: [BLOCK], spread: { every: 3 } };

/**
 * Records until the stage is in flight, then executes the run with another configuration.
 * `earlier`: those that it had before; `every`: what the stage is given now instead of the setting.
 */
async function carriedOver(
  row_characters: number,
  { before, now, earlier, ...wired }: {
    before: Config;
    now: Config;
    earlier: Config[];
    every?: number;
  },
) {
  const definition = withRows(row_characters);
  const store = new MemoryStore();
  await bench({ store }).engine.create(definition, before, { id: "run" });
  const dying = store.restarted({ crash_after_appends: 1 });
  await rejects(bench({ store: dying }).engine.execute("run", definition.build(before)), Crashed);
  const { engine } = bench({ store: dying.restarted() });
  const graph = withRows(row_characters, wired).build(now);
  const outcome = await engine.execute("run", graph, { earlier, accept: true });
  return outcome.status === "failed" ? outcome.error.code : outcome;
}

Deno.test("an input of settings that a resume changed, set or removed is the recorded one", async () => {
  const json = fc.jsonValue().filter((value) =>
    value !== null && !JSON.stringify(value).includes("__proto__")
  );
  const block = fc.record({
    rate: fc.nat(3),
    inner: fc.record({ on: fc.boolean() }),
    extra: json,
  }, { requiredKeys: ["rate", "inner"], noNullPrototype: true });
  const config = fc.record({
    block,
    list: fc.tuple(block, block),
    spread: fc.record({ every: fc.nat(3), often: json }, {
      requiredKeys: ["every"],
      noNullPrototype: true,
    }),
  }, { noNullPrototype: true }) as fc.Arbitrary<Config>;
  const rows = fc.constantFrom(1, 10_000);
  await fc.assert(
    fc.asyncProperty(rows, config, config, config, async (characters, first, second, third) => {
      // Blocks that are equal now may have been different: which was which, no input says.
      fc.pre(distinct(third) && distinct(second));
      for (const [before, earlier] of [[first, [first, second]], [second, [first, second]]]) {
        const outcome = await carriedOver(characters, {
          before: before as Config,
          now: third,
          earlier: earlier as Config[],
        });
        deepStrictEqual(outcome, { status: "done", output: third.block.rate });
      }
    }),
    { numRuns: 50 },
  );
});

/** Whether no two blocks of a configuration are equal. */
function distinct({ block, list, spread }: Config): boolean {
  const blocks = [block, ...list, spread].map((one) => JSON.stringify(one));
  return new Set(blocks).size === blocks.length;
}

for (const rows of [1, 10_000]) {
  Deno.test(`a value that no resume changed is a new input (${rows} characters)`, async () => {
    const now = { ...CONFIG, block: { ...BLOCK, rate: 3 } };
    const other = { ...now, spread: { every: 4 } };
    for (const earlier of [[], [other]]) {
      strictEqual(await carriedOver(rows, { before: CONFIG, now, earlier }), "replay_drift");
    }
    const spread = { ...CONFIG, spread: { every: 4 } };
    strictEqual(
      await carriedOver(rows, { before: CONFIG, now: spread, earlier: [CONFIG], every: 5 }),
      "replay_drift",
    );
    const set = { ...CONFIG, block: { ...BLOCK, extra: 1 } };
    strictEqual(await carriedOver(rows, { before: CONFIG, now: set, earlier: [] }), "replay_drift");
  });

  Deno.test(`a fork that sets a setting has a new input (${rows} characters)`, async () => {
    const store = new MemoryStore();
    const definition = withRows(rows);
    const used = bench({ store });
    await used.engine.create(definition, CONFIG, { id: "run" });
    await used.engine.execute("run", definition.build(CONFIG));
    const run = (await store.head("run"))!;
    const prefix = (config: Config) =>
      prefixOf({ store, artifacts }, { run, graph: definition.build(config), round: 1 });
    deepStrictEqual(
      (await prefix(CONFIG)).rows.filter(({ kind }) => kind === "result").map(({ key }) => key),
      ["work"],
    );
    await rejects(prefix({ ...CONFIG, block: { ...BLOCK, extra: 1 } }), ReplayDriftError);
  });
}
