import { basename } from "node:path";
import { z } from "zod";
import { CheckpointsConfig } from "../../configs/mod.ts";
import { Policy } from "../../data/mod.ts";
import {
  defineStage,
  isNamed,
  type RecordedMetrics,
  type RecordingContext,
  type Resource,
  type Stage,
} from "../../engine/mod.ts";
import { ASIDE, type PolicyTrainer, VersionNote } from "../../workers/mod.ts";
import { OWN_NAMES, removeOwn } from "../own_files.ts";
import { Critic, Paths, Trainer, Trainers } from "../resources.ts";
import { kept } from "../retention.ts";
import { stepMetrics } from "./train_policy.ts";

const Input = CheckpointsConfig.extend({
  policy: Policy,
  beside: Policy.optional().describe(
    "The other trainer's model of this round: keep_best may use its metrics.",
  ),
  round: z.int().positive(),
  last: z.int().positive().describe("The loop's last round: its policy is always saved."),
  lag: z.int().nonnegative().default(0).describe(
    "Rounds that unfinished generation may be behind this policy.",
  ),
});
/** @internal */
type Input = z.input<typeof Input>;

/**
 * Saves the policy every `every_rounds` rounds, and after the last, and drops the checkpoints that
 * nothing keeps any more. A deletion is recorded before it is done. A checkpoint that was saved for
 * a preemption or a replan is of no round: it does not stand for this one. A second run writes the
 * same checkpoint again, in a different directory.
 */
function checkpointing(name: string, own: Resource<PolicyTrainer>) {
  return defineStage({
    name,
    version: 2,
    input: Input,
    output: Policy,
    runs_on: own.name,
    phase: "checkpoint",
    eager: true,
    async run({ policy, beside, round, last, lag, ...checkpoints }, ctx: RecordingContext) {
      const trainer = ctx.resource(own);
      const known = trainer.checkpoints();
      const due = (round % checkpoints.every_rounds === 0 || round === last) &&
        !known.some((checkpoint) =>
          checkpoint.version === policy.version && checkpoint.round !== null
        );
      if (!due) return policy;
      const dir = `${ctx.resource(Paths).checkpoints}/${nameOf(policy, ctx)}`;
      const models = [policy, ...(beside ? [beside] : [])];
      const metric = await metricOf(ctx, {
        round,
        models,
        wanted: checkpoints.keep_best?.metric ?? null,
      });
      const saved = await trainer.save(policy, { dir, round, metric }, ctx);
      await ctx.record("note/checkpoint", policy.version, saved);
      const all = trainer.checkpoints();
      const stays = kept(all, checkpoints, policy.number - lag);
      for (const old of all.filter(({ version }) => !stays.has(version))) {
        await ctx.record("note/checkpoint_dropped", old.version, { dir: old.dir });
        trainer.dropped(old.version);
      }
      await removeOthers(ctx, await untouched(ctx));
      return policy;
    },
  });
}

/** Saves the policy every so many rounds, and drops what retention no longer keeps. */
export const checkpointPolicy: Stage<Input, Policy> = checkpointing("checkpoint_policy", Trainer);
/** Saves the value model every so many rounds, and drops what retention no longer keeps. */
export const checkpointCritic: Stage<Input, Policy> = checkpointing("checkpoint_critic", Critic);

function nameOf({ number, version }: Policy, { epoch, attempt }: RecordingContext): string {
  return `${String(number).padStart(6, "0")}-${version.slice(0, 12)}-${epoch}-${attempt}`;
}

type Wanted = { round: number; models: Policy[]; wanted: string | null };

/** The value of a metric in this round, from what is recorded; null if nothing recorded has it. */
async function metricOf(
  ctx: RecordingContext,
  { round, models, wanted }: Wanted,
): Promise<number | null> {
  if (wanted === null) return null;
  await ctx.durable(); // Else the round's rows may not be there yet.
  const scope = ctx.key.split("/").slice(0, -1).join("/");
  const told: Record<string, number> = {};
  // The first were recorded before metrics had separate rows.
  const notes = await ctx.read({ kinds: ["note/round_metrics"], prefix: `${scope}/` });
  for (const { value } of notes) Object.assign(told, value);
  const rows = await ctx.read({ kinds: ["metrics"], prefix: `${scope}/` });
  for (const { value } of rows) Object.assign(told, (value as RecordedMetrics).metrics);
  for (const { version } of models) {
    const versions = await ctx.read({ kinds: ["note/version"], prefix: version });
    const note = versions.map(({ value }) => VersionNote.parse(value)).at(-1);
    if (note && note.steps.length > 0) Object.assign(told, stepMetrics(note));
  }
  if (!(wanted in told)) {
    ctx.emit({
      log: `round ${round} has no metric '${wanted}' for checkpoints.keep_best: it has ${
        Object.keys(told)
      }`,
    });
  }
  return told[wanted] ?? null;
}

/**
 * Names of directories that stay: checkpoints, those being written, damaged ones even if the engine
 * died before it moved one.
 */
async function untouched(ctx: RecordingContext): Promise<Set<string>> {
  const aside = await ctx.read({ kinds: ["note/checkpoint_set_aside"] });
  const damaged = aside.map(({ value }) => basename((value as { dir: string }).dir));
  return new Set([ASIDE, ...damaged, ...inUse(ctx)]);
}

/** Names of directories that hold a checkpoint of any trainer, or one that is being written now. */
function inUse(ctx: RecordingContext): Set<string> {
  const dirs = ctx.resource(Trainers).flatMap((
    one,
  ) => [...one.checkpoints().map(({ dir }) => dir), ...one.writing]);
  return new Set(dirs.map((dir) => basename(dir)));
}

/**
 * Removes what is no checkpoint: dropped ones, and those that a dead engine or attempt had started
 * and never recorded. An engine that was frozen since then does not know what its successor has
 * saved, and leaves everything.
 */
async function removeOthers(ctx: RecordingContext, stays: Set<string>): Promise<void> {
  const { checkpoints } = ctx.resource(Paths);
  for await (const { name } of Deno.readDir(checkpoints)) {
    const checkpoint = name.replace(TWIN, "");
    if (stays.has(checkpoint) || !isNamed(name, OWN_NAMES.checkpoint)) continue;
    await ctx.owned();
    // Started meanwhile: before a preemption, between two world sizes, or by the other trainer.
    if (inUse(ctx).has(checkpoint)) continue;
    await removeOwn(ctx, `${checkpoints}/${name}`, OWN_NAMES.checkpoint);
  }
}

/**
 * Of a checkpoint that a different number of ranks is reading: it is next to it, and removed with
 * it.
 */
const TWIN = /^\.universal\./;
