import { z } from "zod";
import type { ModelOrRecipe } from "../../configs/mod.ts";
import { defineStage, type GraphBuilder, type Ref, type Stage } from "../../engine/mod.ts";
import { filesIn, isWhole } from "../files/own_directories.ts";
import { FileEntry } from "../../workers/mod.ts";
import { Paths, Trainer } from "../resources.ts";

const CreatedModel = z.strictObject({
  path: z.string(),
  digest: z.string(),
  files: z.array(FileEntry),
});
/** @internal */
type CreatedModel = z.output<typeof CreatedModel>;

/**
 * Creates a small model and its tokenizer. The seed determines every bit: a second run creates the
 * same files.
 */
export const createModel: Stage<{ recipe: string; seed: number }, CreatedModel> = defineStage({
  name: "create_model",
  version: 1,
  input: z.strictObject({ recipe: z.string(), seed: z.int() }),
  output: CreatedModel,
  runs_on: "trainer",
  leaves: {
    areThere: ({ path, files }, ctx) => isWhole(path, { ctx, files }),
    identity: ({ digest }) => `digest ${digest}`,
  },
  async run({ recipe, seed }, ctx) {
    const model = await ctx.resource(Trainer).createModel(
      { recipe, seed, dir: `${ctx.resource(Paths).run}/model` },
      ctx,
    );
    return { path: model.dir, digest: model.digest, files: await filesIn(model.dir) };
  },
});

/** The model directory that training starts from: read, or created from a recipe. */
export function startingModel(
  g: GraphBuilder,
  { path, recipe, seed }: Pick<ModelOrRecipe, "path" | "recipe" | "seed">,
): Ref<string> | string {
  return path ?? g.stage(createModel, { recipe: recipe!, seed }).field("path");
}
