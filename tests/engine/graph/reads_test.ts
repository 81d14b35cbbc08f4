import { deepStrictEqual } from "node:assert/strict";
import { loopsBefore } from "../../../engine/graph/reads.ts";
import { defineStage, graph, type GraphNode, keysRead } from "../../../engine/mod.ts";
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

Deno.test("loopsBefore() names the loops that a node's input comes from", () => {
  const two = graph("two", Config, (g) => {
    const start = g.stage(noop, {}, { as: "start" });
    g.stage(noop, { start }, { as: "beside" });
    const warm = g.loop("warmup", { times: 2, carry: { start } }, (r) => ({
      start: r.stage(noop, { old: r.carried("start") }),
    }));
    const between = g.stage(noop, { warm: warm.start }, { as: "between" });
    const last = g.loop("round", { times: 2, carry: { start } }, (r) => ({
      start: r.stage(noop, { old: r.carried("start"), between }),
    }));
    const branch = g.when(
      start as never,
      (inner) => inner.stage(noop, { last: last.start }, { as: "inside" }),
      () => warm.start,
    );
    return g.stage(noop, { branch }, { as: "after" });
  }).build({ lag: 0 });
  const before = loopsBefore({ nodes: [...two.nodes], output: two.output });
  const named = (nodes: readonly GraphNode[]): [string, readonly string[] | undefined][] =>
    nodes.flatMap((node) => [
      [node.name, before.get(node.id)],
      ...node.kind === "when" ? named(node.then.nodes) : [],
    ]);
  deepStrictEqual(named(two.nodes), [
    ["start", []],
    ["beside", []],
    ["warmup", []],
    ["between", ["warmup"]],
    ["round", ["warmup"]],
    ["when", []],
    ["inside", ["warmup", "round"]],
    ["after", ["warmup", "round"]],
  ]);
});
