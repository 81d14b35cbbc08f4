import { z } from "zod";
import { Optimizer, Policy } from "../../data/mod.ts";
import { defineStage } from "../../engine/mod.ts";
import { Trainer } from "../resources.ts";

/** Names the first version of a chain after the weights of a model directory. Changes nothing: safe to run twice. */
export const preparePolicy = defineStage({
  name: "prepare_policy",
  version: 1,
  input: z.strictObject({ model_path: z.string(), optimizer: Optimizer }),
  output: Policy,
  runs_on: "trainer",
  phase: "other",
  async run({ model_path, optimizer }, ctx) {
    const { policy, note } = await ctx.resource(Trainer).base(model_path, optimizer, ctx);
    ctx.note("version", policy.version, note);
    return policy;
  },
});
