import { z } from "zod";
import { ArtifactRef, type Batch, type Chat, pairOf, type Row } from "../../../data/mod.ts";
import { defineStage, type Stage } from "../../../engine/mod.ts";
import { nextRows } from "./draw_rows.ts";
import { Picks } from "./mix_sources.ts";
import { firstRows, OpenedSplit } from "./open_data.ts";

const RoundInput = z.strictObject({
  data: OpenedSplit,
  round: z.int().positive(),
  count: z.int().positive(),
  seed: z.int(),
  updates_per_batch: z.int().positive(),
  epochs_per_batch: z.int().positive(),
  picks: Picks.optional().describe("Absent: sources are not mixed."),
});
/** @internal */
type RoundInput = z.input<typeof RoundInput>;

/**
 * The next batch of preference pairs, in the run's order. They are not draws of the ledger. Pure
 * except for one artifact: safe to run twice.
 */
export const drawPairs: Stage<RoundInput, ArtifactRef> = defineStage({
  name: "draw_pairs",
  version: 1,
  input: RoundInput,
  output: ArtifactRef,
  phase: "training",
  eager: true,
  async run(input, ctx) {
    const { rows, updates } = await nextRows(input, ctx);
    return await ctx.artifacts.putJson(batchOf(rows, { updates, chat: input.data.chat }));
  },
});

const EvaluationInput = z.strictObject({ data: OpenedSplit, count: z.int().positive().nullable() });
/** @internal */
type EvaluationInput = z.input<typeof EvaluationInput>;

/** The first `count` pairs of a split, each once, as one batch. Safe to run twice. */
export const drawEvaluationPairs: Stage<EvaluationInput, ArtifactRef> = defineStage({
  name: "draw_evaluation_pairs",
  version: 1,
  input: EvaluationInput,
  output: ArtifactRef,
  async run({ data, count }, ctx) {
    const rows = await firstRows(data, count, ctx);
    return await ctx.artifacts.putJson(
      batchOf(rows, { updates: [rows.map((_, place) => place)], chat: data.chat }),
    );
  },
});

function batchOf(rows: Row[], { updates, chat }: { updates: number[][]; chat?: Chat }): Batch {
  const pairs = rows.map(pairOf);
  return {
    kind: "preference",
    pairs,
    chat,
    columns: {},
    temperature: 1,
    coef: {},
    updates,
  };
}
