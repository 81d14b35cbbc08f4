import { z } from "zod";
import { setting } from "../data/mod.ts";

/** The grader in Python that the reward worker imports. */
export const MATH_SOURCE = "holdfast_worker.rewards.graders.math_answer:grade";

/** Whether mathematics is equal. It runs in the reward's processes; this is its description. */
export const MathConfig = z.strictObject({
  name: z.literal("math").describe(
    "1 if the completion's answer is mathematically equal to the row's, else 0.",
  ),
  timeout_ms: z.int().positive().default(10_000).describe(
    "A completion that takes longer to grade fails its sample.",
  ).register(setting, { unit: "ms", resume: "stages" }),
});
