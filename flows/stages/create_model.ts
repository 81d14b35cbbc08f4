import { z } from "zod";
import { defineStage, type Stage } from "../../engine/mod.ts";
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
