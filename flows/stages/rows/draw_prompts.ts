import { z } from "zod";
import { Slab } from "../../../data/mod.ts";
import { defineStage, type Stage } from "../../../engine/mod.ts";
import { cutSlabs } from "../../../rollouts/mod.ts";
import { Picks } from "./mix_sources.ts";
import { boundedDraw, drawsOf, firstRows, OpenedSplit } from "./open_data.ts";

/**
 * How draws are split into slabs: by the configured number of samplers, never by the number of
 * living ones.
 */
export const SlabCut = z.strictObject({
  slab_groups: z.int().positive().nullable(),
  samplers: z.int().positive(),
});

const RoundInput = z.strictObject({
  data: OpenedSplit,
  round: z.int().positive(),
  count: z.int().positive(),
  seed: z.int(),
  slabs: SlabCut,
  picks: Picks.optional().describe("Absent: sources are not mixed."),
});
/** @internal */
type RoundInput = z.input<typeof RoundInput>;

/**
 * Draws the prompts of one round in the run's order and splits them into slabs. Pure: safe to run
 * twice.
 */
export const drawPrompts: Stage<RoundInput, Slab[]> = defineStage({
  name: "draw_prompts",
  version: 1,
  input: RoundInput,
  output: z.array(Slab),
  phase: "generation",
  eager: true,
  async run({ data, round, count, seed, slabs, picks }, ctx) {
    const draws = await drawsOf(data, { seed, from: (round - 1) * count, count, picks }, ctx);
    ctx.tally({ read: draws.length });
    return cutSlabs(draws, slabs);
  },
});

const EvaluationInput = z.strictObject({
  data: OpenedSplit,
  count: z.int().positive().nullable(),
  slabs: SlabCut,
});
/** @internal */
type EvaluationInput = z.input<typeof EvaluationInput>;

/**
 * The first `count` rows of a split, each once, for an evaluation: they are not draws of the
 * ledger.
 */
export const drawEvaluation: Stage<EvaluationInput, Slab[]> = defineStage({
  name: "draw_evaluation",
  version: 1,
  input: EvaluationInput,
  output: z.array(Slab),
  async run({ data, count, slabs }, ctx) {
    const rows = await firstRows(data, count, ctx);
    return cutSlabs(rows.map((row, draw) => boundedDraw({ draw, row }, data)), slabs);
  },
});
