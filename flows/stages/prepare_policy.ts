import { z } from "zod";
import { Optimizer, Policy } from "../../data/mod.ts";
import {
  defineStage,
  type ForkPolicy,
  type RecordingContext,
  type Resource,
  type Stage,
} from "../../engine/mod.ts";
import type { PolicyTrainer } from "../../workers/mod.ts";
import { Critic, Trainer } from "../resources.ts";

const Input = z.strictObject({ model_path: z.string(), optimizer: Optimizer });
/** @internal */
type Input = z.input<typeof Input>;

/**
 * The start's optimizer applies only to its first versions: after a fork's prefix, training uses
 * the child's optimizer.
 */
const START: ForkPolicy = { keeps: true };
/** A fork's algorithm may learn more than the policy, from its first round on. */
const BESIDE: ForkPolicy = { keeps: true, anew: true };

type Preparing = { trainer: Resource<PolicyTrainer>; fork: ForkPolicy };

/**
 * Names the first version of a chain after the weights of a model directory. Changes nothing: safe
 * to run twice.
 */
function preparing(name: string, { trainer, fork }: Preparing) {
  return defineStage({
    name,
    version: 1,
    input: Input,
    output: Policy,
    runs_on: trainer.name,
    phase: "other",
    fork,
    async run({ model_path, optimizer }, ctx: RecordingContext) {
      const { policy, note } = await ctx.resource(trainer).base(model_path, optimizer, ctx);
      ctx.note("version", policy.version, note);
      return policy;
    },
  });
}

/** Names the policy's first version after a model directory. */
export const preparePolicy: Stage<Input, Policy> = preparing("prepare_policy", {
  trainer: Trainer,
  fork: START,
});
/** Names the value model's first version after a model directory. */
export const prepareCritic: Stage<Input, Policy> = preparing("prepare_critic", {
  trainer: Critic,
  fork: BESIDE,
});

/**
 * Names a reference model that is not the policy's own start. It is not part of a chain: nothing is
 * trained from it.
 */
export const prepareReference: Stage<Input, Policy> = defineStage({
  name: "prepare_reference",
  version: 1,
  input: Input,
  output: Policy,
  runs_on: "trainer",
  phase: "other",
  fork: BESIDE,
  async run({ model_path, optimizer }, ctx: RecordingContext) {
    const { policy, note } = await ctx.resource(Trainer).base(model_path, optimizer, ctx);
    ctx.note("version", policy.version, { ...note, group: "reference" });
    return policy;
  },
});
