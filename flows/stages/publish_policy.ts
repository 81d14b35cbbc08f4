import { z } from "zod";
import { Policy } from "../../data/mod.ts";
import { defineStage } from "../../engine/mod.ts";
import { Publication } from "../../workers/mod.ts";
import { Paths, Sampler, Trainer } from "../resources.ts";

/** A policy with its weights written out for samplers. */
export const Published = z.strictObject({ policy: Policy, publication: Publication });
export type Published = z.infer<typeof Published>;

/**
 * Writes the weights of a policy and puts them on every sampler, each of which proves that they reached its kernels.
 * A second run writes the same files again.
 */
export const publishPolicy = defineStage({
  name: "publish_policy",
  version: 1,
  input: z.strictObject({ policy: Policy }),
  output: Published,
  runs_on: "trainer",
  phase: "publication",
  eager: true,
  async run({ policy }, ctx) {
    const dir = `${ctx.resource(Paths).publications}/${policy.version.slice(0, 16)}`;
    const publication = await ctx.resource(Trainer).publish(policy, dir, ctx);
    const published = { policy, publication };
    const proofs = await ctx.resource(Sampler).load(published, ctx);
    ctx.note("publication", policy.version, { publication, proofs });
    return published;
  },
});
