import { z } from "zod";
import { defineStage } from "../../engine/mod.ts";
import { holds } from "../own_directories.ts";
import { Paths, Trainer } from "../resources.ts";

/** Makes a small model and its tokenizer on the spot. The seed fixes every bit: a second run makes the same files. */
export const createModel = defineStage({
  name: "create_model",
  version: 1,
  input: z.strictObject({ recipe: z.string(), seed: z.int() }),
  output: z.strictObject({ path: z.string(), digest: z.string() }),
  runs_on: "trainer",
  leaves: {
    areThere: ({ path }, ctx) => holds(path, { ctx }),
    identity: ({ digest }) => `digest ${digest}`,
  },
  async run({ recipe, seed }, ctx) {
    const made = await ctx.resource(Trainer).createModel(
      { recipe, seed, dir: `${ctx.resource(Paths).run}/model` },
      ctx,
    );
    return { path: made.dir, digest: made.digest };
  },
});
