import { basename } from "node:path";
import { z } from "zod";
import { CheckpointsConfig, metricName } from "../../configs/mod.ts";
import { Policy } from "../../data/mod.ts";
import {
  defineStage,
  isNamed,
  LostRecordError,
  type RecordingContext,
  type Resource,
  type Stage,
} from "../../engine/mod.ts";
import {
  ASIDE,
  type CheckpointDropped,
  type CheckpointNote,
  moveWeights,
  type PolicyTrainer,
  weightsPath,
} from "../../workers/mod.ts";
import { OWN_NAMES, removeOwn } from "../files/own_files.ts";
import { Critic, Paths, Trainer, Trainers } from "../resources.ts";
import { kept } from "../files/retention.ts";
import { roundMetricsSoFar, valueOf } from "./round_metrics.ts";

const Input = CheckpointsConfig.extend({
  policy: Policy,
  beside: Policy.optional().describe(
    "The other trainer's model of this round; keep_best may use its metrics.",
  ),
  round: z.int().positive(),
  last: z.int().positive().describe("The loop's last round: its policy is always saved."),
  lag: z.int().nonnegative().default(0).describe(
    "How many rounds unfinished generation may be behind this policy.",
  ),
});
/** @internal */
type Input = z.input<typeof Input>;

/**
 * Saves the policy every `every_rounds` rounds and after the last round, and deletes checkpoints
 * that need not be kept any more, some of them except for their weights (`keep_weights_every`). A
 * deletion is recorded before it happens. A checkpoint saved for a preemption or a replan belongs
 * to no round, so it does not replace this one. A second run writes the same checkpoint again, in a
 * different directory.
 */
function checkpointing(name: string, trainerResource: Resource<PolicyTrainer>) {
  return defineStage({
    name,
    version: 2,
    input: Input,
    output: Policy,
    runs_on: trainerResource.name,
    phase: "checkpoint",
    eager: true,
    async run({ policy, beside, round, last, lag, ...checkpoints }, ctx: RecordingContext) {
      const trainer = ctx.resource(trainerResource);
      const known = trainer.checkpoints();
      if (round % checkpoints.every_rounds !== 0 && round !== last) return policy;
      const isSaved = known.some((checkpoint) =>
        checkpoint.version === policy.version && checkpoint.round !== null
      );
      if (!isSaved) {
        const dir = `${ctx.resource(Paths).checkpoints}/${nameOf(policy, ctx)}`;
        const models = [policy, ...(beside ? [beside] : [])];
        const wanted = checkpoints.keep_best?.metric ?? null;
        const metric = await metricOf(ctx, { round, models, wanted });
        const metric_name = wanted === null ? undefined : metricName(wanted);
        const saved = await trainer.save(policy, { dir, round, metric, metric_name }, ctx);
        await ctx.record("note/checkpoint", policy.version, saved);
      }
      // An engine that died after it had saved it may not have dropped the others.
      const all = trainer.checkpoints();
      const stays = kept(all, checkpoints, policy.number - lag);
      for (const old of all.filter(({ version }) => !stays.has(version))) {
        const weights = trainerResource === Trainer && keepsWeights(old, checkpoints)
          ? weightsPath(old.dir)
          : undefined;
        const dropped: CheckpointDropped = { dir: old.dir, weights };
        await ctx.record("note/checkpoint_dropped", old.version, dropped);
        trainer.dropped(old.version);
      }
      await removeOthers(ctx, await untouched(ctx));
      return policy;
    },
  });
}

/**
 * Saves the policy every `every_rounds` rounds and deletes checkpoints that retention no longer
 * keeps.
 */
export const checkpointPolicy: Stage<Input, Policy> = checkpointing("checkpoint_policy", Trainer);
/**
 * Saves the value model every `every_rounds` rounds and deletes checkpoints that retention no
 * longer keeps.
 */
export const checkpointCritic: Stage<Input, Policy> = checkpointing("checkpoint_critic", Critic);

function nameOf({ number, version }: Policy, { epoch, attempt }: RecordingContext): string {
  return `${String(number).padStart(6, "0")}-${version.slice(0, 12)}-${epoch}-${attempt}`;
}

type Wanted = { round: number; models: Policy[]; wanted: string | null };

/** The recorded value of a metric in this round; null if no record has it. */
async function metricOf(
  ctx: RecordingContext,
  { round, models, wanted }: Wanted,
): Promise<number | null> {
  if (wanted === null) return null;
  const metrics = await roundMetricsSoFar(ctx, models);
  const value = valueOf(metrics, wanted);
  if (value === null) {
    ctx.emit({
      log: `round ${round} has no metric '${wanted}' for checkpoints.keep_best: it has ${
        Object.keys(metrics)
      }`,
    });
  }
  return value;
}

function keepsWeights(
  { round }: CheckpointNote,
  { keep_weights_every }: Pick<CheckpointsConfig, "keep_weights_every">,
): boolean {
  return round !== null && keep_weights_every !== null && round % keep_weights_every === 0;
}

/**
 * Names of directories that are kept: checkpoints, those being written, and damaged ones even if
 * the engine died before it moved them.
 */
async function untouched(ctx: RecordingContext): Promise<Set<string>> {
  const aside = await ctx.read({ kinds: ["note/checkpoint_set_aside"] });
  const damaged = aside.map(({ value }) => basename((value as { dir: string }).dir));
  return new Set([ASIDE, ...damaged, ...inUse(ctx)]);
}

/** Names of directories that contain a checkpoint of any trainer, or one that is being written. */
function inUse(ctx: RecordingContext): Set<string> {
  const dirs = ctx.resource(Trainers).flatMap((
    one,
  ) => [...[...one.checkpoints(), ...one.starts()].map(({ dir }) => dir), ...one.writing]);
  return new Set(dirs.map((dir) => basename(dir)));
}

/**
 * Removes directories that are not checkpoints: dropped ones, and those that a dead engine or
 * attempt started but never recorded. An engine that was frozen in between does not know what its
 * successor has saved, so it removes nothing.
 */
async function removeOthers(ctx: RecordingContext, stays: Set<string>): Promise<void> {
  const { checkpoints } = ctx.resource(Paths);
  for await (const { name } of Deno.readDir(checkpoints)) {
    const checkpoint = name.replace(TWIN, "");
    if (stays.has(checkpoint) || !isNamed(name, OWN_NAMES.checkpoint)) continue;
    await ctx.owned();
    // Started in the meantime: before a preemption, between two world sizes, or by the other
    // trainer.
    if (inUse(ctx).has(checkpoint)) continue;
    if (!await weightsAreSafe(ctx, checkpoint)) continue;
    await removeOwn(ctx, `${checkpoints}/${name}`, OWN_NAMES.checkpoint);
  }
}

/**
 * Moves the weights that stay out of a directory that will be removed. False: its row in the journal
 * is damaged, so that nobody knows whether they should.
 */
async function weightsAreSafe(ctx: RecordingContext, name: string): Promise<boolean> {
  const [, prefix] = name.split("-"); // As `nameOf` begins a version.
  try {
    const rows = await ctx.read({ kinds: ["note/checkpoint_dropped"], prefix });
    const dropped = rows.map(({ value }) => value as CheckpointDropped);
    for (const one of dropped) if (basename(one.dir) === name) await moveWeights(one);
    return true;
  } catch (error) {
    if (!(error instanceof LostRecordError)) throw error;
    ctx.emit({ log: `${name} was not removed: ${error.message}` });
    return false;
  }
}

/**
 * The converted form of a checkpoint for a different number of ranks is next to it and removed with
 * it.
 */
const TWIN = /^\.universal\./;
