import { z } from "zod";
import { Policy } from "../../data/mod.ts";
import { defineStage, type Resource } from "../../engine/mod.ts";
import { type PolicyTrainer, Publication, type PublishTarget } from "../../workers/mod.ts";
import { Critic, Paths, Trainer } from "../resources.ts";

/**
 * Writes a model as a plain Hugging Face directory that `from_pretrained` opens, a policy's vLLM too; what was trained by an adapter
 * as a PEFT directory. Safe to run twice.
 */
function exporting(name: string, trainer: Resource<PolicyTrainer>, form: PublishTarget["form"] = "adapter") {
  return defineStage({
    name,
    version: 1,
    input: z.strictObject({ policy: Policy, name: z.string() }),
    output: Publication,
    runs_on: trainer.name,
    phase: "publication",
    async run({ policy, name }, ctx) {
      const dir = `${ctx.resource(Paths).run}/${name}`;
      const exported = await ctx.resource(trainer).publish(policy, { dir, form }, ctx);
      ctx.note("exported", name, { policy, publication: exported });
      return exported;
    },
  });
}

export const exportPolicy = exporting("export_policy", Trainer);
/** As a whole model in any case: another chain of versions starts from it. */
export const exportModel = exporting("export_policy", Trainer, "merged");
export const exportCritic = exporting("export_critic", Critic);
