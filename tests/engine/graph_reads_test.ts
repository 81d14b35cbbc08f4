import { deepStrictEqual } from "node:assert/strict";
import { defineStage, graph, keysRead } from "../../engine/mod.ts";
import { z } from "zod";

const Config = z.strictObject({ lag: z.number() });

const noop = defineStage({
  name: "noop",
  version: 1,
  input: z.record(z.string(), z.unknown()),
  output: z.any(),
  run: () => [1, 2],
});
const each = defineStage({
  name: "each",
  version: 1,
  input: z.strictObject({ item: z.number(), policy: z.any() }),
  output: z.any(),
  run: ({ item }) => item,
});

const shaped = graph("shaped", Config, (g, { lag }) => {
  const start = g.stage(noop, {}, { as: "start" });
  const flag = g.stage(noop, { start }, { as: "flag" });
  const loop = g.loop("round", { times: 3, carry: { start } }, (r) => {
    const lists = r.map(each, start, { policy: r.carried("start", { lag }) });
    const train = r.stage(noop, { flat: r.flat(lists as never), old: r.carried("start") }, {
      as: "train",
    });
    return { start: train };
  });
  const branch = g.when(
    flag,
    (inner) => inner.stage(noop, { loop: loop.start }, { as: "inside" }),
    () => loop.start,
  );
  return g.stage(noop, { branch }, { as: "last" });
});

Deno.test("keysRead() names the nodes, carried rounds, loops and branches that are read", () => {
  const built = shaped.build({ lag: 1 });
  deepStrictEqual(keysRead(built, "flag"), ["start"]);
  deepStrictEqual(keysRead(built, "round/3/each#2"), ["start", "round/1"]);
  deepStrictEqual(keysRead(built, "round/1/each#2"), ["start"]);
  deepStrictEqual(keysRead(built, "round/3/train"), ["round/3/each", "round/2"]);
  deepStrictEqual(keysRead(built, "when/then/inside"), ["round"]);
  deepStrictEqual(keysRead(built, "last"), ["when"]);
  for (const key of ["round/3/train/step#1", "nothing", "round/3", ""]) {
    deepStrictEqual(keysRead(built, key), []);
  }
});
