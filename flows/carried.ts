import { z } from "zod";
import { Policy, RunningScores } from "../data/mod.ts";
import { Progress } from "./stages/evaluation/judge_progress.ts";
import { Mixing } from "./stages/rows/mixed_stream.ts";
import { Draws } from "./stages/sample_until_full.ts";

/** What the rounds of the shipped flows pass on, by name. */
export const CARRIED: Record<string, z.ZodType> = {
  policy: Policy,
  critic: Policy,
  reference: Policy,
  coef: z.record(z.string(), z.number()),
  drawn: Mixing.shape.drawn,
  recent: Mixing.shape.recent,
  running: z.record(z.string(), RunningScores),
  draws: Draws,
  progress: Progress,
};
