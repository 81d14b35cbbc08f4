import { z } from "zod";
import { defineStage, graph, type RecordingContext } from "../../../engine/mod.ts";
import { NoConfig } from "../fixtures.ts";

/** Longer than what stays in a row. */
const LONG = 70_000;
const Text = z.string();

/**
 * Values that move to artifacts wherever values are recorded: results, steps, checkpoints, items,
 * carried values.
 */
export function longValues(starts: Map<string, number>) {
  const started = (key: string) => void starts.set(key, (starts.get(key) ?? 0) + 1);
  const base = { version: 1, output: Text };
  const make = defineStage({
    ...base,
    name: "make",
    input: z.strictObject({ of: Text }),
    run: async ({ of }, ctx: RecordingContext) => {
      started(ctx.key);
      const step = await ctx.step("step", ({ key }) => (started(key), `${of[0]}s`.repeat(LONG)));
      return `${step[0]}m`.repeat(LONG);
    },
  });
  const task = defineStage({
    ...base,
    name: "task",
    input: z.strictObject({ of: Text }),
    runs_on: "trainer",
    run: async ({ of }, ctx: RecordingContext) => {
      started(ctx.key);
      const kept = (await ctx.checkpoints()) as string[];
      if (kept.length === 0) await ctx.checkpoint(`${of[0]}c`.repeat(LONG));
      return `${of[0]}t`.repeat(LONG);
    },
  });
  return graph("long_values", NoConfig, (g) => {
    const rounds = g.loop(
      "round",
      { times: 2, carry: { text: g.stage(make, { of: "x" }) } },
      (r) => {
        return { text: r.stage(task, { of: r.carried("text") }) };
      },
    );
    return g.stage(make, { of: rounds.text });
  });
}
