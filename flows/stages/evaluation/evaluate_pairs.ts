import { z } from "zod";
import { AlgorithmChoice, OpenedAlgorithm, titleOf } from "../../../algs/mod.ts";
import { ArtifactRef, Batch, Policy } from "../../../data/mod.ts";
import { defineStage, type RecordingContext, type Stage } from "../../../engine/mod.ts";
import { Trainer } from "../../resources.ts";
import { evaluationNamed } from "./evaluate_round.ts";
import { lossOf } from "../train_policy.ts";

const /** @internal */ pairEvaluationSchema = z.strictObject({
  name: z.string(),
  pairs: z.int(),
  completions: z.int().optional().describe(
    "Labelled completions that were judged one by one; absent: pairs were.",
  ),
  loss: z.number(),
  pair_accuracy: z.number().describe(
    "Share of pairs whose chosen side has the higher reward, or of completions whose reward is on " +
      "their label's side of the reference point; a tie is wrong.",
  ),
  pair_margin: z.number().describe(
    "Mean reward of the chosen sides, or desirable completions, minus that of the others.",
  ),
});
/** How well a policy tells held-out pairs apart. */
export type PairEvaluation = z.infer<typeof pairEvaluationSchema>;
/** Schema of {@linkcode PairEvaluation}. */
export const PairEvaluation: typeof pairEvaluationSchema = pairEvaluationSchema;

const Input = z.strictObject({
  name: z.string().describe("`{round}` in it stands for the round's number."),
  round: z.int().positive().optional(),
  set: z.string().optional().describe("The set of pairs, if there are several; absent: one set."),
  batch: ArtifactRef,
  policy: Policy,
  algorithm: AlgorithmChoice,
  opened: OpenedAlgorithm.optional().describe("The algorithm, if it is in Python."),
  micro_batch_tokens_max: z.int().positive(),
});
/** @internal */
type Input = z.input<typeof Input>;

/**
 * The loss's metrics on held-out pairs. Passes the policy on, so that training waits until the
 * trainer no longer needs to hold it. Trains nothing: safe to run twice.
 */
export const evaluatePairs: Stage<Input, { policy: Policy; evaluation: PairEvaluation }> =
  defineStage({
    name: "evaluate_pairs",
    version: 1,
    input: Input,
    output: z.strictObject({ policy: Policy, evaluation: PairEvaluation }),
    runs_on: "trainer",
    // The result on held-out pairs before the first round stays valid, regardless of the later
    // loss.
    fork: { keeps: true },
    async run(
      { set, batch, policy, algorithm, opened, micro_batch_tokens_max, ...named },
      ctx: RecordingContext,
    ) {
      const name = evaluationNamed(named);
      const read = Batch.parse(await ctx.artifacts.getJson(batch));
      const loss = opened?.loss ?? await ctx.artifacts.put(lossOf(algorithm));
      const measured = await ctx.resource(Trainer).evaluate({
        policy,
        batch,
        loss,
        micro_batch_tokens_max,
      }, ctx);
      const { "reward/accuracy": pair_accuracy, "reward/margin": pair_margin } = measured.metrics;
      if (pair_accuracy === undefined || pair_margin === undefined) {
        throw new TypeError(
          `Cannot evaluate on pairs because the loss of '${titleOf(algorithm)}' does not report ` +
            `'reward/accuracy' and 'reward/margin': its metrics are ${
              Object.keys(measured.metrics).join(", ") || "none"
            }`,
        );
      }
      const judged = read.kind === "unpaired"
        ? { pairs: 0, completions: read.completions.length }
        : { pairs: read.kind === "preference" ? read.pairs.length : 0 };
      const summary = { name, ...judged, loss: measured.loss, pair_accuracy, pair_margin };
      ctx.note("evaluation", name, summary);
      const under = set === undefined ? "eval" : `eval/${set}`;
      const metrics = {
        [`${under}/pair_accuracy`]: pair_accuracy,
        [`${under}/pair_margin`]: pair_margin,
      };
      ctx.emit({ metrics, version: policy.version });
      return { policy, evaluation: summary };
    },
  });
