import { z } from "zod";
import { Policy } from "../../data/mod.ts";
import { defineStage } from "../../engine/mod.ts";
import { Paths, Trainer } from "../resources.ts";

/**
 * Saves the policy every `every_rounds` rounds, and after the last, and drops what `keep_last` no longer keeps. A deletion is recorded before
 * it is done. A second run writes the same checkpoint again, in a directory of its own.
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
    for (const old of known.slice(0, Math.max(0, known.length + 1 - keep_last))) {
      await ctx.record("note/checkpoint_dropped", old.version, { dir: old.dir });
      trainer.dropped(old.version);
      await Deno.remove(old.dir, { recursive: true }).catch((cause) => {
        if (!(cause instanceof Deno.errors.NotFound)) throw cause;
      });
    }
    return policy;
  },
});
