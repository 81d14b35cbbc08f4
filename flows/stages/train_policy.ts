import { z } from "zod";
import { AlgorithmChoice, expressionsOf } from "../../algs/mod.ts";
import { ArtifactRef, Optimizer, Policy } from "../../data/mod.ts";
import { canonicalJson, defineStage } from "../../engine/mod.ts";
import { Trainer } from "../resources.ts";

/**
 * Trains one batch. The version that it makes is named before the work starts, so a second run gives the same version;
 * without a batch (no group of the round was usable) the policy is carried over.
 */
export const trainPolicy = defineStage({
  name: "train_policy",
  version: 1,
  input: z.strictObject({
    batch: ArtifactRef.nullable(),
    policy: Policy,
    algorithm: AlgorithmChoice,
    optimizer: Optimizer,
    micro_batch_tokens_max: z.int().positive(),
  }),
  output: Policy,
  runs_on: "trainer",
  phase: "training",
  eager: true,
  async run({ batch, policy, algorithm, optimizer, micro_batch_tokens_max }, ctx) {
    if (batch === null) return policy;
    const loss = await ctx.artifacts.put(lossOf(algorithm));
    const work = { policy, batch, loss, optimizer, micro_batch_tokens_max };
    const trained = await ctx.resource(Trainer).train(work, ctx);
    ctx.note("version", trained.policy.version, trained.note);
    const last = trained.note.steps.at(-1)!;
    ctx.emit({
      metrics: {
        "policy/loss": last.loss,
        "optim/grad_norm": last.grad_norm,
        "optim/lr": last.lr,
        "perf/trained_tokens": trained.note.steps.reduce((sum, step) => sum + step.n_tokens, 0),
        ...last.metrics,
      },
    });
    return trained.policy;
  },
});

/** The choices of a run are few, and the same in every round. */
const LOSSES_MAX = 16;
const losses = new Map<string, Uint8Array>();

/** The expression's canonical JSON, traced once for each choice. */
function lossOf(algorithm: AlgorithmChoice): Uint8Array {
  const name = canonicalJson(algorithm);
  const known = losses.get(name);
  if (known) return known;
  const made = new TextEncoder().encode(canonicalJson(expressionsOf(algorithm).loss));
  if (losses.size >= LOSSES_MAX) losses.clear();
  losses.set(name, made);
  return made;
}
