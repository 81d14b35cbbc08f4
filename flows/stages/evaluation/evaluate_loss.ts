import { z } from "zod";
import { AlgorithmChoice, OpenedAlgorithm } from "../../../algs/mod.ts";
import { ArtifactRef, Batch, Policy } from "../../../data/mod.ts";
import { defineStage, type RecordingContext, type Stage } from "../../../engine/mod.ts";
import { Trainer } from "../../resources.ts";
import { evaluationNamed } from "./evaluate_round.ts";
import { lossOf } from "../train_policy.ts";

const /** @internal */ lossEvaluationSchema = z.strictObject({
  name: z.string(),
  rows: z.int(),
  tokens: z.number().describe("Tokens of the rows' completions."),
  loss: z.number(),
});
/** How well a policy predicts held-out completions. */
export type LossEvaluation = z.infer<typeof lossEvaluationSchema>;
/** Schema of {@linkcode LossEvaluation}. */
export const LossEvaluation: typeof lossEvaluationSchema = lossEvaluationSchema;

const Input = z.strictObject({
  name: z.string().describe("`{round}` in it stands for the round's number."),
  round: z.int().positive().optional(),
  metrics_under: z.string().describe("Prefix of its metrics."),
  batch: ArtifactRef,
  policy: Policy,
  algorithm: AlgorithmChoice,
  opened: OpenedAlgorithm.optional().describe("The algorithm, if it is in Python."),
  micro_batch_tokens_max: z.int().positive(),
});
/** @internal */
type Input = z.input<typeof Input>;

/**
 * The loss of training on held-out rows. Passes the policy on, so that training waits until the
 * trainer no longer needs to hold it. Trains nothing: safe to run twice.
 */
export const evaluateLoss: Stage<Input, { policy: Policy; evaluation: LossEvaluation }> =
  defineStage({
    name: "evaluate_loss",
    version: 1,
    input: Input,
    output: z.strictObject({ policy: Policy, evaluation: LossEvaluation }),
    runs_on: "trainer",
    async run(input, ctx: RecordingContext) {
      const { batch, policy, algorithm, opened, micro_batch_tokens_max } = input;
      const name = evaluationNamed(input);
      const read = Batch.parse(await ctx.artifacts.getJson(batch));
      const loss = opened?.loss ?? await ctx.artifacts.put(lossOf(algorithm));
      const work = { policy, batch, loss, micro_batch_tokens_max };
      const measured = await ctx.resource(Trainer).evaluate(work, ctx);
      const rows = read.kind === "supervised" ? read.rows.length : 0;
      const evaluation: LossEvaluation = {
        name,
        rows,
        tokens: measured.n_tokens,
        loss: measured.loss,
      };
      ctx.note("evaluation", name, evaluation);
      const metrics = { [`${input.metrics_under}/loss`]: measured.loss };
      ctx.emit({ metrics, version: policy.version });
      return { policy, evaluation };
    },
  });
