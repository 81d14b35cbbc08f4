import { z } from "zod";
import {
  ArtifactRef,
  type Batch,
  type Chat,
  labelledCompletions,
  mismatchedOf,
  type Row,
} from "../../../data/mod.ts";
import { defineStage, type Stage } from "../../../engine/mod.ts";
import { nextRows } from "./draw_rows.ts";
import { Picks } from "./mix_sources.ts";
import { firstRows, OpenedSplit } from "./open_data.ts";

const mismatched = z.boolean().describe(
  "Whether the loss also reads completions behind the prompts of others.",
);

const RoundInput = z.strictObject({
  data: OpenedSplit,
  round: z.int().positive(),
  count: z.int().positive().describe("Rows; of a preference both sides are completions."),
  seed: z.int(),
  updates_per_batch: z.int().positive(),
  epochs_per_batch: z.int().positive(),
  picks: Picks.optional().describe("Absent: sources are not mixed."),
  mismatched,
});
/** @internal */
type RoundInput = z.input<typeof RoundInput>;

/**
 * The next batch of labelled completions, in the run's order of rows. They are not draws of the
 * ledger. Pure except for one artifact: safe to run twice.
 */
export const drawCompletions: Stage<RoundInput, ArtifactRef> = defineStage({
  name: "draw_completions",
  version: 1,
  input: RoundInput,
  output: ArtifactRef,
  phase: "training",
  eager: true,
  async run({ mismatched, ...draw }, ctx) {
    const { rows, updates } = await nextRows(draw, ctx);
    const { chat } = draw.data;
    return await ctx.artifacts.putJson(batchOf(rows, { updates, chat, mismatched }));
  },
});

const EvaluationInput = z.strictObject({
  data: OpenedSplit,
  count: z.int().positive().nullable(),
  mismatched,
});
/** @internal */
type EvaluationInput = z.input<typeof EvaluationInput>;

/** The completions of the first `count` rows of a split, as one batch. Safe to run twice. */
export const drawEvaluationCompletions: Stage<EvaluationInput, ArtifactRef> = defineStage({
  name: "draw_evaluation_completions",
  version: 1,
  input: EvaluationInput,
  output: ArtifactRef,
  async run({ data, count, mismatched }, ctx) {
    const rows = await firstRows(data, count, ctx);
    const updates = [rows.map((_, place) => place)];
    return await ctx.artifacts.putJson(batchOf(rows, { updates, chat: data.chat, mismatched }));
  },
});

type Steps = { updates: number[][]; chat?: Chat; mismatched: boolean };

/** `updates` name rows; the batch's name completions, both of a preference in the same step. */
function batchOf(rows: Row[], { updates, chat, mismatched }: Steps): Batch {
  const ofRows = rows.map(labelledCompletions);
  let next = 0;
  const places = ofRows.map((sides) => sides.map(() => next++));
  const completions = ofRows.flat();
  return {
    kind: "unpaired",
    completions,
    mismatched: mismatched ? mismatchedOf(completions) : undefined,
    chat,
    columns: {},
    temperature: 1,
    coef: {},
    updates: updates.map((step) => step.flatMap((row) => places[row]!)),
  };
}
