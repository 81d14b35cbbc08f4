import { z } from "zod";
import { ArtifactRef, type Batch, drawRows } from "../../data/mod.ts";
import { defineStage } from "../../engine/mod.ts";
import { OpenedSplit, openedTable } from "./open_data.ts";

/** The next batch of supervised rows, in the run's order. Pure but for one artifact: safe to run twice. */
export const drawSupervised = defineStage({
  name: "draw_rows",
  version: 1,
  input: z.strictObject({ data: OpenedSplit, round: z.int().positive(), count: z.int().positive(), seed: z.int() }),
  output: ArtifactRef,
  phase: "training",
  eager: true,
  async run({ data, round, count, seed }, ctx) {
    const draws = drawRows(openedTable(data, ctx), { seed, from: (round - 1) * count, count });
    const rows = draws.map(({ row }) => row);
    const batch: Batch = { kind: "supervised", rows, temperature: 1, coef: {}, updates: [rows.map((_, i) => i)] };
    return await ctx.artifacts.putJson(batch);
  },
});
