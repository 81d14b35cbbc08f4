import { z } from "zod";
import { Policy } from "../../data/mod.ts";
import { defineStage, isNamed, type RecordingContext, type Stage } from "../../engine/mod.ts";
import { Publication } from "../../workers/mod.ts";
import { OWN_NAMES, removeOwn } from "../files/own_files.ts";
import { Paths, Sampler, Trainer } from "../resources.ts";

const /** @internal */ publishedSchema = z.strictObject({
  policy: Policy,
  publication: Publication,
});
/** A policy with its weights written out for samplers. */
export type Published = z.infer<typeof publishedSchema>;
/** Schema of {@linkcode Published}. */
export const Published: typeof publishedSchema = publishedSchema;

/**
 * Number of publications that are kept besides the newest. A dropped one is written again if
 * needed.
 */
const KEPT = 3;

/**
 * Writes the weights of a policy and loads them on every sampler; each sampler proves that they
 * reached its kernels. Deletes the files of older publications; a deletion is recorded before it
 * happens. A second run writes the same files again.
 */
export const publishPolicy: Stage<{ policy: Policy }, Published> = defineStage({
  name: "publish_policy",
  version: 1,
  input: z.strictObject({ policy: Policy }),
  output: Published,
  runs_on: "trainer",
  phase: "publication",
  eager: true,
  async run({ policy }, ctx: RecordingContext) {
    const { publications } = ctx.resource(Paths);
    const dir = `${publications}/${policy.version.slice(0, 16)}`;
    const publication = await ctx.resource(Trainer).publish(policy, dir, ctx);
    const published = { policy, publication };
    const proofs = await ctx.resource(Sampler).load(published, ctx);
    ctx.note("publication", policy.version, { publication, proofs });
    for (const old of await olderThan(dir, { publications, kept: KEPT })) {
      await ctx.record("note/publication_dropped", old, { dir: `${publications}/${old}` });
      await ctx.owned(); // After a freeze, the current owner of the run may be writing it.
      await removeOwn(ctx, `${publications}/${old}`, OWN_NAMES.weights);
    }
    return published;
  },
});

/** Names of publications to delete: all except `dir` and the last `kept` ones written before it. */
async function olderThan(
  dir: string,
  { publications, kept }: { publications: string; kept: number },
): Promise<string[]> {
  const found: { name: string; at: number }[] = [];
  for await (const { name } of Deno.readDir(publications)) {
    const path = `${publications}/${name}`;
    if (path !== dir && isNamed(name, OWN_NAMES.weights)) {
      found.push({ name, at: (await Deno.lstat(path)).mtime?.getTime() ?? 0 });
    }
  }
  return found.toSorted((a, b) => b.at - a.at).slice(kept).map(({ name }) => name);
}
