import { z } from "zod";
import { Policy } from "../../data/mod.ts";
import {
  defineStage,
  type RecordingContext,
  type Resource,
  RUN_ID,
  type Stage,
} from "../../engine/mod.ts";
import { type PolicyTrainer, Publication, type PublishTarget } from "../../workers/mod.ts";
import { holds } from "../files/own_directories.ts";
import { Critic, Paths, Trainer } from "../resources.ts";

/**
 * The name of a directory in the run's directory. It is replaced as a whole, so it must not be one
 * in which the run keeps other files.
 */
const ExportName = z.string().regex(RUN_ID, "must be a plain file name")
  .refine(
    (name) => !["model", "publications", "references", "faults"].includes(name),
    "is used by the run itself",
  );

const Input = z.strictObject({ policy: Policy, name: ExportName });
/** @internal */
type Input = z.input<typeof Input>;

/**
 * Writes a model as a plain Hugging Face directory that `from_pretrained` opens (vLLM also opens a
 * policy's), or, if an adapter was trained, as a PEFT directory. Safe to run twice.
 */
function exporting(
  name: string,
  trainer: Resource<PolicyTrainer>,
  how: Pick<PublishTarget, "form" | "average"> = { form: "adapter" },
) {
  return defineStage({
    name,
    version: 1,
    input: Input,
    output: Publication,
    runs_on: trainer.name,
    phase: "publication",
    leaves: {
      areThere: ({ dir, files }, ctx) => holds(dir, { ctx, files }),
      identity: ({ digest }) => `digest ${digest}`,
    },
    async run({ policy, name }, ctx: RecordingContext) {
      const dir = `${ctx.resource(Paths).run}/${name}`;
      const exported = await ctx.resource(trainer).publish(policy, { dir, ...how }, ctx);
      ctx.note("exported", name, { policy, publication: exported });
      return exported;
    },
  });
}

/** Writes the policy as a Hugging Face directory under `runs/RUN`. */
export const exportPolicy: Stage<Input, Publication> = exporting("export_policy", Trainer);
/** Writes the moving average of the policy's weights (`trainer.ema_decay`), as `exportPolicy` does. */
export const exportAverage: Stage<Input, Publication> = exporting("export_average", Trainer, {
  form: "adapter",
  average: true,
});
/** Always a complete model, because another chain of versions starts from it. */
export const exportModel: Stage<Input, Publication> = exporting("export_policy", Trainer, {
  form: "merged",
});
/** Writes the value model as a Hugging Face directory under `runs/RUN`. */
export const exportCritic: Stage<Input, Publication> = exporting("export_critic", Critic);
