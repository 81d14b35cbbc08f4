import { basename } from "node:path";
import { z } from "zod";
import { Policy } from "../../data/mod.ts";
import { defineStage } from "../../engine/mod.ts";
import { Paths, Trainer } from "../resources.ts";

/**
 * Saves the policy every `every_rounds` rounds, and after the last, and drops what `keep_last` no longer keeps. A deletion is
 * recorded before it is done. A second run writes the same checkpoint again, in a directory of its own.
 */
export const checkpointPolicy = defineStage({
  name: "checkpoint_policy",
  version: 1,
  input: z.strictObject({
    policy: Policy,
    round: z.int().positive(),
    last: z.int().positive().describe("The loop's last round: its policy is always saved."),
    every_rounds: z.int().positive(),
    keep_last: z.int().positive(),
  }),
  output: Policy,
  runs_on: "trainer",
  phase: "checkpoint",
  eager: true,
  async run({ policy, round, last, every_rounds, keep_last }, ctx) {
    const trainer = ctx.resource(Trainer);
    const known = trainer.checkpoints();
    const due = (round % every_rounds === 0 || round === last) &&
      !known.some((checkpoint) => checkpoint.version === policy.version);
    if (!due) return policy;
    const name = `${String(policy.number).padStart(6, "0")}-${policy.version.slice(0, 12)}-${ctx.epoch}-${ctx.attempt}`;
    const saved = await trainer.save(policy, `${ctx.resource(Paths).checkpoints}/${name}`, ctx);
    await ctx.record("note/checkpoint", policy.version, saved);
    const all = trainer.checkpoints();
    const kept = all.slice(-keep_last);
    for (const old of all.slice(0, -keep_last)) {
      await ctx.record("note/checkpoint_dropped", old.version, { dir: old.dir });
      trainer.dropped(old.version);
    }
    await removeOthers(ctx.resource(Paths).checkpoints, new Set(kept.map(({ dir }) => basename(dir))));
    return policy;
  },
});

/** Removes what is no checkpoint: dropped ones, and those that a dead engine or attempt had begun and never recorded. */
async function removeOthers(checkpoints: string, kept: Set<string>): Promise<void> {
  for await (const { name } of Deno.readDir(checkpoints)) {
    if (!kept.has(name)) await Deno.remove(`${checkpoints}/${name}`, { recursive: true });
  }
}
