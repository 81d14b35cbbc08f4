import { z } from "zod";

const SHAPE = /^(.+\.py):([A-Za-z_]\w*)$/;

/** The two halves of `path.py:function`; null if the text is none. */
export function parsePythonReward(text: string): { path: string; function: string } | null {
  const match = text.match(SHAPE);
  return match ? { path: match[1]!, function: match[2]! } : null;
}

/** A reward function in a Python file. It runs in a pool of processes; this is only its description. */
export const PythonRewardConfig = z.strictObject({
  name: z.literal("python").describe("A function in a Python file. Written short: `path.py:function`."),
  source: z.string().regex(SHAPE, "must be path.py:function").describe("`path.py:function`: where the function is."),
  timeout_ms: z.int().positive().default(10_000).describe("A call that takes longer fails its sample."),
});
