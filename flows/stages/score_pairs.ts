import { z } from "zod";
import { ArtifactRef, Batch, type Column, Policy, ScoredColumn } from "../../data/mod.ts";
import { defineStage, type Stage } from "../../engine/mod.ts";
import { Trainer } from "../resources.ts";

const Input = z.strictObject({
  batch: ArtifactRef,
  policy: Policy,
  reference: z.strictObject({
    path: z.string().nullable().describe("null: the model itself with its adapter switched off."),
    offload: z.boolean(),
  }),
  columns: z.array(ScoredColumn),
  micro_batch_tokens_max: z.int().positive(),
});
/** @internal */
type Input = z.input<typeof Input>;

/**
 * The batch with the columns that its loss reads, or the batch itself if it reads none. Safe to run
 * twice.
 */
export const scorePairs: Stage<Input, ArtifactRef> = defineStage({
  name: "score_pairs",
  version: 1,
  input: Input,
  output: ArtifactRef,
  runs_on: "trainer",
  phase: "training",
  eager: true,
  // The result on held-out pairs before the first round stays valid, regardless of the later loss.
  fork: { keeps: true },
  async run({ batch, policy, reference, columns, micro_batch_tokens_max }, ctx) {
    if (columns.length === 0) return batch;
    const from = { reference_path: reference.path, reference_offload: reference.offload };
    const work = { policy, batch, columns, ...from, micro_batch_tokens_max };
    const scored = await ctx.resource(Trainer).score(work, ctx);
    const added = Object.entries(scored).map((
      [name, artifact],
    ): [string, Column] => [name, { kind: "token", artifact }]);
    const read = Batch.parse(await ctx.artifacts.getJson(batch));
    return await ctx.artifacts.putJson({ ...read, columns: Object.fromEntries(added) });
  },
});
