import { z } from "zod";
import { ArtifactRef, type Batch, type Picks as Picked, type Row } from "../../../data/mod.ts";
import { type Context, defineStage, type Stage } from "../../../engine/mod.ts";
import { Picks } from "./mix_sources.ts";
import { drawsOf, firstRows, OpenedSplit } from "./open_data.ts";
import { updatesOf } from "../optimizer_steps.ts";

const Input = z.strictObject({
  data: OpenedSplit,
  round: z.int().positive(),
  count: z.int().positive(),
  seed: z.int(),
  updates_per_batch: z.int().positive(),
  epochs_per_batch: z.int().positive(),
  picks: Picks.optional().describe("Absent: sources are not mixed."),
});
/** @internal */
type Input = z.input<typeof Input>;

/**
 * The next batch of supervised rows, in the run's order. Pure except for one artifact: safe to run
 * twice.
 */
export const drawSupervised: Stage<Input, ArtifactRef> = defineStage({
  name: "draw_rows",
  version: 1,
  input: Input,
  output: ArtifactRef,
  phase: "training",
  eager: true,
  async run(input, ctx) {
    const batch: Batch = {
      kind: "supervised",
      ...await nextRows(input, ctx),
      chat: input.data.chat,
      temperature: 1,
      coef: {},
    };
    return await ctx.artifacts.putJson(batch);
  },
});

const EvaluationInput = z.strictObject({ data: OpenedSplit, count: z.int().positive().nullable() });
/** @internal */
type EvaluationInput = z.input<typeof EvaluationInput>;

/** The first `count` rows of a split, each once, as one batch. Safe to run twice. */
export const drawEvaluationRows: Stage<EvaluationInput, ArtifactRef> = defineStage({
  name: "draw_evaluation_rows",
  version: 1,
  input: EvaluationInput,
  output: ArtifactRef,
  async run({ data, count }, ctx) {
    const rows = await firstRows(data, count, ctx);
    const batch: Batch = {
      kind: "supervised",
      rows,
      updates: [rows.map((_, place) => place)],
      chat: data.chat,
      temperature: 1,
      coef: {},
    };
    return await ctx.artifacts.putJson(batch);
  },
});

type DrawInput = {
  data: OpenedSplit;
  round: number;
  count: number;
  seed: number;
  updates_per_batch: number;
  epochs_per_batch: number;
  picks?: Picked;
};

/** A round's rows in the run's order, and the optimizer steps over them. */
export async function nextRows(
  { data, round, count, seed, picks, ...steps }: DrawInput,
  ctx: Context,
): Promise<{ rows: Row[]; updates: number[][] }> {
  const { updates_per_batch: updates, epochs_per_batch: epochs } = steps;
  const draws = await drawsOf(data, { seed, from: (round - 1) * count, count, picks }, ctx);
  return {
    rows: draws.map(({ row }) => row),
    updates: updatesOf(draws.length, { updates, epochs }, ctx),
  };
}
