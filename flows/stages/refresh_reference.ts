import { z } from "zod";
import { Policy } from "../../data/mod.ts";
import {
  type Context,
  defineStage,
  isNamed,
  type RecordingContext,
  type Stage,
} from "../../engine/mod.ts";
import { OWN_NAMES, removeOwn } from "../files/own_files.ts";
import { Paths, Trainer } from "../resources.ts";
import { unlessMissing } from "../files/unless_missing.ts";

const Input = z.strictObject({
  policy: Policy,
  reference: Policy,
  round: z.int().positive(),
  refresh_rounds: z.int().positive(),
});
/** @internal */
type Input = z.input<typeof Input>;

/**
 * Every `refresh_rounds` rounds the reference becomes the policy of that round: its weights are
 * written for the trainer to read, and the previous reference's weights are deleted, which is
 * recorded first. In other rounds the reference is carried over. A second run writes the same
 * files.
 */
export const refreshReference: Stage<Input, Policy> = defineStage({
  name: "refresh_reference",
  version: 1,
  input: Input,
  output: Policy,
  runs_on: "trainer",
  phase: "other",
  async run({ policy, reference, round, refresh_rounds }, ctx: RecordingContext) {
    if (round % refresh_rounds !== 0 || policy.version === reference.version) return reference;
    const path = await referencePath(policy, ctx);
    ctx.note("reference", policy.version, { round, number: policy.number, dir: path });
    for (const old of (await references(ctx)).filter((dir) => dir !== path)) {
      await ctx.record("note/reference_dropped", policy.version, { dir: old });
      await ctx.owned();
      await removeOwn(ctx, old, OWN_NAMES.weights);
    }
    return policy;
  },
});

/**
 * Where a reference's weights are. If those of a trained version are missing, as in a fork, they
 * are recreated.
 */
export async function referencePath(reference: Policy, ctx: Context): Promise<string> {
  if (reference.number === 0) return reference.model_path;
  const dir = `${parentOf(ctx)}/${reference.version.slice(0, 16)}`;
  // The directory is complete or absent, because it is moved into place.
  const there = await Deno.stat(dir).then(({ isDirectory }) => isDirectory, unlessMissing);
  if (!there) await ctx.resource(Trainer).publish(reference, { dir, form: "merged" }, ctx);
  return dir;
}

/**
 * The directories that this run has written. A reference may also be the user's model, which is
 * never touched.
 */
async function references(ctx: Context): Promise<string[]> {
  const parent = parentOf(ctx);
  const there = await Deno.stat(parent).then(({ isDirectory }) => isDirectory, unlessMissing);
  const names = there ? await Array.fromAsync(Deno.readDir(parent), ({ name }) => name) : [];
  return names.filter((name) => isNamed(name, OWN_NAMES.weights)).map((name) =>
    `${parent}/${name}`
  );
}

function parentOf(ctx: Context): string {
  return `${ctx.resource(Paths).run}/references`;
}
