import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { defineStage, graph, prefixOf, ReplayDriftError } from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { artifacts, bench } from "../fixtures.ts";

type Shape = Record<string, z.ZodType>;
/**
 * What a later version of the code has more: settings with defaults, in a block of the
 * configuration and beside it.
 */
type Later = { block?: Shape; nested?: Shape; input?: Shape; wired?: Record<string, unknown> };

/**
 * A graph whose stage is given a block of the configuration whole, one spread out, and rows of
 * `row_characters`.
 */
function version(
  row_characters: number,
  { block = {}, nested = {}, input = {}, wired = {} }: Later = {},
) {
  const Block = z.strictObject({
    rate: z.number(),
    inner: z.strictObject({ on: z.boolean(), ...nested }),
    ...block,
  });
  const Config = z.strictObject({
    block: Block,
    list: z.array(Block),
    spread: z.strictObject({ every: z.number(), ...block }),
  });
  const stage = defineStage({
    name: "work",
    version: 1,
    input: z.strictObject({
      rows: z.string(),
      block: Block,
      list: z.array(Block),
      ...Config.shape.spread.shape,
      ...input,
    }),
    output: z.number(),
    run: async ({ block }, ctx) => {
      await ctx.step("first", () => 1);
      return await ctx.step("second", () => block.rate);
    },
  });
  return graph("versions", Config, (g, { block, list, spread }) => {
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
/** A setting that was not there before. */
const later = (name: string, value: unknown = 0) => ({ [name]: z.any().default(value) });

/**
 * Records with the first version until the stage is in flight, then executes the run with a later
 * one.
 */
async function carriedOver(row_characters: number, after: Later, config: unknown = CONFIG) {
  const store = new MemoryStore();
  const before = version(row_characters);
  await bench({ store }).engine.create(before, CONFIG, { id: "run" });
  const dying = store.restarted({ crash_after_appends: 1 });
  await rejects(bench({ store: dying }).engine.execute("run", before.build(CONFIG)), Crashed);
  const graph = version(row_characters, after).build(config as typeof CONFIG);
  return await bench({ store: dying.restarted() }).engine.execute("run", graph);
}

Deno.test("settings newer than a run change none of its inputs by their defaults", async () => {
  const name = fc.stringMatching(/^[a-z]{1,6}_new$/);
  const value = fc.jsonValue().filter((json) =>
    json !== null && !JSON.stringify(json).includes("__proto__")
  );
  const shape = fc.dictionary(name, value, { maxKeys: 3, noNullPrototype: true })
    .map((fields) =>
      Object.assign(
        {},
        ...Object.entries(fields).map(([key, fallback]) => later(key, fallback)),
      ) as Shape
    );
  const rows = fc.constantFrom(1, 10_000); // Larger inputs are recorded as hashes only.
  await fc.assert(
    fc.asyncProperty(rows, shape, shape, shape, async (row_characters, block, nested, input) => {
      const outcome = await carriedOver(row_characters, { block, nested, input });
      deepStrictEqual(outcome, { status: "done", output: 2 });
    }),
  );
});

for (const rows of [1, 10_000]) {
  Deno.test(`a new field changes the input unless it has its default (${rows})`, async () => {
    const input = later("extra", 7);
    deepStrictEqual(await carriedOver(rows, { input, wired: { extra: 7 } }), {
      status: "done",
      output: 2,
    });
    const other = await carriedOver(rows, { input, wired: { extra: 8 } });
    strictEqual(other.status === "failed" && other.error.code, "replay_drift");
  });

  Deno.test(`a changed value stays a new input beside new settings (${rows})`, async () => {
    const config = { ...CONFIG, block: { ...BLOCK, rate: 3 } };
    const outcome = await carriedOver(rows, { block: later("extra") }, config);
    strictEqual(outcome.status === "failed" && outcome.error.code, "replay_drift");
  });

  Deno.test(`a new setting reads as what its absence meant (${rows} characters)`, async () => {
    const [block, extra] = [later("extra"), { extra: 1 }];
    const config = {
      block: { ...BLOCK, ...extra },
      list: [{ ...BLOCK, ...extra }],
      spread: { every: 3, ...extra },
    };
    deepStrictEqual(await carriedOver(rows, { block }, config), { status: "done", output: 2 });
  });

  Deno.test(`a fork that sets a new setting has a new input (${rows} characters)`, async () => {
    const store = new MemoryStore();
    const before = version(rows);
    const used = bench({ store });
    await used.engine.create(before, CONFIG, { id: "run" });
    await used.engine.execute("run", before.build(CONFIG));
    const run = (await store.head("run"))!;
    const after = version(rows, { block: later("extra") });
    const prefix = (config: typeof CONFIG) => {
      const graphs = { graph: after.build(config), resolved: after.build(CONFIG).config };
      return prefixOf({ store, artifacts }, { run, ...graphs, round: 1 });
    };
    deepStrictEqual(
      (await prefix(CONFIG)).rows.filter(({ kind }) => kind === "result").map(({ key }) => key),
      [
        "work",
      ],
    );
    const other = { ...CONFIG, block: { ...BLOCK, extra: 1 } };
    await rejects(prefix(other), ReplayDriftError);
  });
}
