import { z } from "zod";
import {
  AlgorithmChoice,
  expressionsOf,
  OpenedAlgorithm,
  ratioBounds,
  type TracedAlgorithm,
} from "../../algs/mod.ts";
import { ArtifactRef, Optimizer, Policy } from "../../data/mod.ts";
import {
  canonicalJson,
  defineStage,
  type RecordingContext,
  type Resource,
  type Stage,
} from "../../engine/mod.ts";
import type { PolicyTrainer, VersionNote } from "../../workers/mod.ts";
import { Critic, Trainer } from "../resources.ts";

const Input = z.strictObject({
  batch: ArtifactRef.nullable(),
  policy: Policy,
  algorithm: AlgorithmChoice,
  opened: OpenedAlgorithm.optional().describe("The algorithm, if it is in Python."),
  optimizer: Optimizer,
  micro_batch_tokens_max: z.int().positive(),
});
/** @internal */
type Input = z.input<typeof Input>;

/**
 * Trains one batch. The resulting version is named before the work starts, so a second run creates
 * the same version. Without a batch (nothing in the round was usable for this model) the version is
 * carried over.
 */
function training(name: string, trainer: Resource<PolicyTrainer>, loss: keyof TracedAlgorithm) {
  return defineStage({
    name,
    version: 1,
    input: Input,
    output: Policy,
    runs_on: trainer.name,
    phase: "training",
    eager: true,
    async run(
      { batch, policy, algorithm, opened, optimizer, micro_batch_tokens_max },
      ctx: RecordingContext,
    ) {
      if (batch === null) return policy;
      const recorded = opened?.[loss] ?? await ctx.artifacts.put(lossOf(algorithm, loss));
      // The value model's metrics belong to no policy.
      const mismatch = loss === "loss" ? ratioBounds(algorithm, opened?.settings) : undefined;
      const work = { policy, batch, loss: recorded, optimizer, micro_batch_tokens_max, mismatch };
      const trained = await ctx.resource(trainer).train(work, ctx);
      ctx.note("version", trained.policy.version, trained.note);
      ctx.emit({ metrics: stepMetrics(trained.note), version: trained.policy.version });
      return trained.policy;
    },
  });
}

/** Takes the policy's optimizer steps on a batch. */
export const trainPolicy: Stage<Input, Policy> = training("train_policy", Trainer, "loss");
/** Takes the value model's optimizer steps on a batch. */
export const trainCritic: Stage<Input, Policy> = training("train_critic", Critic, "value_loss");

/**
 * The metrics shown for a version: those of its last step. A value model's metrics have separate
 * names.
 */
export function stepMetrics(
  { group, steps }: Pick<VersionNote, "group" | "steps">,
): Record<string, number> {
  const taken = steps.filter(({ skipped }) => skipped === undefined);
  const last = taken.at(-1);
  const name = group === undefined
    ? { loss: "policy/loss", optim: "optim/" }
    : { loss: "value/loss", optim: "optim/value_" };
  const trained_tokens = taken.reduce((sum, step) => sum + step.n_tokens, 0);
  const metrics: Record<string, number> = {};
  if (last) {
    metrics[name.loss] = last.loss!;
    metrics[`${name.optim}grad_norm`] = last.grad_norm!;
  }
  metrics[`${name.optim}lr`] = steps.at(-1)!.lr;
  if (last?.loss_scale !== undefined) metrics[`${name.optim}loss_scale`] = last.loss_scale;
  const skipped = steps.length - taken.length;
  if (skipped > 0) metrics[`${name.optim}skipped`] = skipped;
  if (group === undefined) metrics["perf/trained_tokens"] = trained_tokens;
  return { ...metrics, ...last?.metrics };
}

/** A run has few choices, and they are the same in every round. */
const LOSSES_MAX = 16;
const losses = new Map<string, Uint8Array>();

/** An expression's canonical JSON, traced once for each choice. */
export function lossOf(
  algorithm: AlgorithmChoice,
  loss: keyof TracedAlgorithm = "loss",
): Uint8Array {
  const name = `${loss} ${canonicalJson(algorithm)}`;
  const known = losses.get(name);
  if (known) return known;
  const encoded = new TextEncoder().encode(canonicalJson(expressionsOf(algorithm)[loss]));
  if (losses.size >= LOSSES_MAX) losses.clear();
  losses.set(name, encoded);
  return encoded;
}
