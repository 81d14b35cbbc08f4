import { z } from "zod";
import { Policy } from "../../data/mod.ts";
import { defineStage } from "../../engine/mod.ts";
import { Publication } from "../../workers/mod.ts";
import { Paths, Trainer } from "../resources.ts";

/** Writes the policy as a plain Hugging Face directory that `from_pretrained` and vLLM open. Safe to run twice. */
export const exportPolicy = defineStage({
  name: "export_policy",
  version: 1,
  input: z.strictObject({ policy: Policy, name: z.string() }),
  output: Publication,
  runs_on: "trainer",
  phase: "publication",
  async run({ policy, name }, ctx) {
    const dir = `${ctx.resource(Paths).run}/${name}`;
    const exported = await ctx.resource(Trainer).publish(policy, dir, ctx);
    ctx.note("exported", name, { policy, publication: exported });
    return exported;
  },
});
