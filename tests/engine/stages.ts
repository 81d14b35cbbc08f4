/** Stages and graphs that tests of several files run. */
import { z } from "zod";
import { defineStage, graph, type RecordingContext, type ReplayPolicy } from "../../engine/mod.ts";
import { NoConfig, Sampler, Trainer } from "./fixtures.ts";

export const numbers = (values: number[]) =>
  defineStage({
    name: "numbers",
    version: 1,
    input: z.strictObject({}),
    output: z.array(z.number()),
    run: () => values,
  });

export const double = defineStage({
  name: "double",
  version: 1,
  input: z.strictObject({ item: z.number() }),
  output: z.number(),
  run: ({ item }) => item * 2,
});

export const add = defineStage({
  name: "add",
  version: 1,
  input: z.strictObject({ to: z.number(), n: z.number() }),
  output: z.number(),
  run: ({ to, n }, ctx: RecordingContext) => {
    ctx.tally({ added: n });
    return to + n;
  },
});

export const slow = defineStage({
  name: "slow",
  version: 1,
  runs_on: "trainer",
  input: z.strictObject({}),
  output: z.string(),
  run: (_, ctx) => ctx.resource(Trainer).run(ctx, null) as Promise<string>,
});

const after = defineStage({
  name: "after",
  version: 1,
  runs_on: "sampler",
  input: z.strictObject({ slow: z.string() }),
  output: z.string(),
  run: async ({ slow }, ctx) => {
    await ctx.resource(Sampler).run(ctx, {});
    return `${slow}!`;
  },
});

export const chain = graph("chain", NoConfig, (g) => g.stage(after, { slow: g.stage(slow, {}) }));

export type Sides = { input: number; steps: string[]; replay?: ReplayPolicy; ran?: string[] };

/** A body that ends only in its second engine, so that its children are recorded and it is not. */
export function drifting({ input, steps, replay, ran = [] }: Sides) {
  const stage = defineStage({
    name: "work",
    version: 1,
    replay,
    input: z.strictObject({ n: z.number(), m: z.string() }),
    output: z.number(),
    run: async ({ n }, ctx) => {
      for (const name of steps) await ctx.step(name, () => void ran.push(name));
      return n;
    },
  });
  return graph("drift", NoConfig, (g) => g.stage(stage, { n: input, m: "same" }));
}

export const FIRST = { input: 1, steps: ["a", "b"] };
