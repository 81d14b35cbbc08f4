import { z } from "zod";
import { setting } from "../data/mod.ts";
import type { Issue } from "./issue_text.ts";
import type { Blocks } from "./rule_blocks.ts";

const SOURCE = /^([^@\s]+?)(?:@([1-9]\d*))?$/;

/** Another run's checkpoint. `round`: the one after which it was saved; null: the newest. */
export type StartFrom = { run: string; round: number | null };

/** The `start_from:` setting, as text. */
export const startFrom = z.string().regex(SOURCE, {
  error: "expected RUN, or RUN@ROUND with a round from 1 on",
}).optional().describe(
  "RUN or RUN@ROUND: a run of this home, also of another release, that this one continues from a " +
    "checkpoint with the rounds after it: weights, optimizer and place in the data. Without a " +
    "round: its newest checkpoint. Absent: from round 1.",
).register(setting, {
  numerics: false,
  fork: { fixed: "start", why: "every version of the prefix descends from it", start: "free" },
  resume: "refused",
});

/** What `start_from` names. */
export function parseStartFrom(text: string): StartFrom {
  const [, run, round] = SOURCE.exec(text)!;
  return { run: run!, round: round === undefined ? null : Number(round) };
}

/** What happens before the first round would happen again. */
export function startsAtRounds({ start_from, model, warmup }: Blocks): Issue[] {
  if (start_from === undefined) return [];
  const made = model !== undefined && "recipe" in model && model.recipe !== undefined;
  const use = "the directory in the other run's folder as model.path";
  return [
    ...(made
      ? [{
        path: ["model", "recipe"],
        message:
          `cannot be used with start_from because the run would create the model again: use ${use}`,
      }]
      : []),
    ...(warmup
      ? [{
        path: ["warmup"],
        message: "cannot be used with start_from because the run would warm up again: use null, " +
          `and ${use}`,
      }]
      : []),
  ];
}
