import { z } from "zod";
import { setting } from "../data/mod.ts";

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
