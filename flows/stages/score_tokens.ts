import { z } from "zod";
import { ArtifactRef, type Batch, Policy } from "../../data/mod.ts";
import { defineStage } from "../../engine/mod.ts";
import { Trainer } from "../resources.ts";
import { ScoredGroup } from "./score_group.ts";

/**
 * Log-probabilities that credit or loss read, and nothing else: with no columns it does nothing. Groups that failed are left
 * out, as credit leaves them out. Pure but for its artifacts: safe to run twice.
 */
export const scoreTokens = defineStage({
  name: "score_tokens",
  version: 1,
  input: z.strictObject({
    scored: z.array(ScoredGroup),
    policy: Policy,
    reference: Policy,
    columns: z.array(z.enum(["old_logp", "ref_logp"])),
    temperature: z.number().positive(),
    micro_batch_tokens_max: z.int().positive(),
  }),
  output: z.record(z.string(), ArtifactRef).describe("Column name to its artifact."),
  phase: "training",
  eager: true,
  async run({ scored, policy, reference, columns, temperature, micro_batch_tokens_max }, ctx) {
    const groups = scored.filter((group) => group.failed === null).map(({ group }) => group)
      .toSorted((a, b) => a.draw - b.draw);
    if (columns.length === 0 || groups.length === 0) return {};
    const parts = { groups, columns: {}, staleness: [], temperature, coef: {}, updates: [groups.map((_, i) => i)] };
    const batch = await ctx.artifacts.putJson({ kind: "trajectories", ...parts } satisfies Batch);
    const work = { policy, batch, columns, reference_path: reference.model_path, micro_batch_tokens_max };
    return await ctx.resource(Trainer).score(work, ctx);
  },
});
