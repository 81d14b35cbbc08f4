import type { ModelOrRecipe } from "../configs/mod.ts";
import type { GraphBuilder, Ref } from "../engine/mod.ts";
import { createModel } from "./stages/create_model.ts";

/** The model directory that training starts from: read, or created from a recipe. */
export function startingModel(
  g: GraphBuilder,
  { path, recipe, seed }: ModelOrRecipe,
): Ref<string> | string {
  return path ?? g.stage(createModel, { recipe: recipe!, seed }).field("path");
}
