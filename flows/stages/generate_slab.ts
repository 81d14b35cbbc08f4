import { z } from "zod";
import { GroupRef, Row, Sampling, Slab } from "../../data/mod.ts";
import { defineStage, type RecordingContext, type Stage } from "../../engine/mod.ts";
import { Sampler } from "../resources.ts";
import { decodeAhead } from "./decoded_slabs.ts";
import { Published } from "./publish_policy.ts";

const /** @internal */ generatedGroupSchema = z.strictObject({
  id: z.string(),
  row: Row,
  group: GroupRef,
  sampled_at: z.int().nonnegative().describe("Number of the sampling policy."),
  sampled_by: z.string().describe("Its version."),
});
/** A generated group: where its trajectories are, and the row that rewards read. */
export type GeneratedGroup = z.infer<typeof generatedGroupSchema>;
/** Schema of {@linkcode GeneratedGroup}. */
export const GeneratedGroup: typeof generatedGroupSchema = generatedGroupSchema;

const Input = z.strictObject({
  item: Slab,
  published: Published,
  samples_per_prompt: z.int().positive(),
  sampling: Sampling,
  seed: z.int(),
});
/** @internal */
type Input = z.input<typeof Input>;

/**
 * Samples every group of a slab at exactly the published version, as one closed batch. A second run
 * generates the whole slab again: with a sampler that repeats, bit for bit the same.
 */
export const generateSlab: Stage<Input, GeneratedGroup[]> = defineStage({
  name: "generate_slab",
  version: 1,
  input: Input,
  output: z.array(GeneratedGroup).describe("In the slab's order."),
  runs_on: "sampler",
  phase: "generation",
  eager: true,
  async run({ item: slab, published, samples_per_prompt, sampling, seed }, ctx: RecordingContext) {
    const samples = slab.draws.length * samples_per_prompt;
    const onNew = () =>
      ctx.record("note/generation", ctx.key, { groups: slab.draws.length, samples });
    const work = { published, slab, samples_per_prompt, sampling, seed };
    const generated = await ctx.resource(Sampler).generate(work, ctx, { onNew });
    const putting = ctx.artifacts.put(generated.slab);
    decodeAhead(generated.slab); // While the disk works: every group of it is scored next.
    const ref = await putting;
    ctx.note("generated", ctx.key, {
      groups: generated.groups,
      samples: generated.samples,
      tokens: generated.tokens,
    });
    const metrics = {
      "perf/generated_tokens": generated.tokens,
      "time/generate_s": generated.seconds,
    };
    ctx.emit({ metrics, version: published.policy.version });
    const all = Array.from({ length: samples_per_prompt }, (_, sample) => sample);
    return slab.draws.map(({ draw, row }, index) => ({
      id: `draw-${draw}`,
      row,
      group: { draw, slab: ref, index, samples: all },
      sampled_at: published.policy.number,
      sampled_by: published.policy.version,
    }));
  },
});
