import { basename } from "node:path";
import { z } from "zod";
import { CheckpointsConfig } from "../../configs/mod.ts";
import { Policy } from "../../data/mod.ts";
import { type Context, defineStage } from "../../engine/mod.ts";
import { ASIDE, VersionNote } from "../../workers/mod.ts";
import { Paths, Trainer } from "../resources.ts";
import { kept } from "../retention.ts";

/**
 * Saves the policy every `every_rounds` rounds, and after the last, and drops the checkpoints that nothing keeps any more. A
 * deletion is recorded before it is done. A checkpoint that was saved for a preemption or a replan is of no round: it does not
 * stand for this one. A second run writes the same checkpoint again, in a directory of its own.
 */
export const checkpointPolicy = defineStage({
  name: "checkpoint_policy",
  version: 2,
  input: CheckpointsConfig.extend({
    policy: Policy,
    round: z.int().positive(),
    last: z.int().positive().describe("The loop's last round: its policy is always saved."),
    lag: z.int().nonnegative().default(0).describe("Rounds that unfinished generation may be behind this policy."),
  }),
  output: Policy,
  runs_on: "trainer",
  phase: "checkpoint",
  eager: true,
  async run({ policy, round, last, lag, ...checkpoints }, ctx) {
    const trainer = ctx.resource(Trainer);
    const known = trainer.checkpoints();
    const due = (round % checkpoints.every_rounds === 0 || round === last) &&
      !known.some((checkpoint) => checkpoint.version === policy.version && checkpoint.round !== null);
    if (!due) return policy;
    const name = `${String(policy.number).padStart(6, "0")}-${policy.version.slice(0, 12)}-${ctx.epoch}-${ctx.attempt}`;
    const dir = `${ctx.resource(Paths).checkpoints}/${name}`;
    const metric = await metricOf(ctx, { round, policy, wanted: checkpoints.keep_best?.metric ?? null });
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

type Wanted = { round: number; policy: Policy; wanted: string | null };

/** The value of a metric in this round, from what is recorded; null if nothing recorded has it. */
async function metricOf(ctx: Context, { round, policy, wanted }: Wanted): Promise<number | null> {
  if (wanted === null) return null;
  await ctx.durable(); // Else the round's rows may not be there yet.
  const scope = ctx.key.split("/").slice(0, -1).join("/");
  const rounds = await ctx.read({ kinds: ["note/round_metrics"], prefix: `${scope}/` });
  const versions = await ctx.read({ kinds: ["note/version"], prefix: policy.version });
  const step = versions.map(({ value }) => VersionNote.parse(value)).at(-1)?.steps.at(-1);
  const told: Record<string, number> = {
    ...(rounds.at(-1)?.value as Record<string, number> | undefined),
    ...(step ? { ...step.metrics, "policy/loss": step.loss, "optim/grad_norm": step.grad_norm } : {}),
  };
  if (!(wanted in told)) {
    ctx.emit({
      log: `round ${round} has no metric '${wanted}' for checkpoints.keep_best: it has ${Object.keys(told)}`,
    });
  }
  return told[wanted] ?? null;
}

/** Names of directories that stay: checkpoints, those being written, damaged ones even if the engine died before it moved one. */
async function untouched(ctx: Context): Promise<Set<string>> {
  const aside = await ctx.read({ kinds: ["note/checkpoint_set_aside"] });
  const damaged = aside.map(({ value }) => basename((value as { dir: string }).dir));
  return new Set([ASIDE, ...damaged, ...inUse(ctx)]);
}

/** Names of directories that hold a checkpoint, or one that is being written now. */
function inUse(ctx: Context): Set<string> {
  const trainer = ctx.resource(Trainer);
  const dirs = [...trainer.checkpoints().map(({ dir }) => dir), ...trainer.writing];
  return new Set(dirs.map((dir) => basename(dir)));
}

/**
 * Removes what is no checkpoint: dropped ones, and those that a dead engine or attempt had begun and never recorded. An
 * engine that was frozen since then does not know what its successor has saved, and leaves everything.
 */
async function removeOthers(ctx: Context, stays: Set<string>): Promise<void> {
  const { checkpoints } = ctx.resource(Paths);
  for await (const { name } of Deno.readDir(checkpoints)) {
    if (stays.has(name)) continue;
    await ctx.owned();
    if (inUse(ctx).has(name)) continue; // Begun meanwhile: before a preemption, or between two world sizes.
    await Deno.remove(`${checkpoints}/${name}`, { recursive: true });
  }
}
