import { z } from "zod";
import { setting } from "../data/mod.ts";
import { defineProcessReward, type ProcessReward } from "./define.ts";
import { processOf } from "./process_limits.ts";

/** The grader in Python that the reward worker imports. */
const SOURCE = "holdfast_worker.rewards.graders.math_answer:grade";

const /** @internal */ config = z.strictObject({
  timeout_ms: z.int().positive().default(10_000).describe(
    "A completion that takes longer to grade fails its sample.",
  ).register(setting, { unit: "ms", resume: "stages" }),
});

/** Whether mathematics is equal. It runs in the reward's processes; this is its description. */
export const math: ProcessReward<"math", typeof config.shape> = defineProcessReward({
  name: "math",
  about: "1 if the completion's answer is mathematically equal to the row's, else 0.",
  runs_on: "process",
  kept: { by: "code", usually: true },
  right_at: 1,
  config,
  check({ answer }) {
    if (answer !== undefined) return;
    throw new RangeError("Cannot score with math because the row has no answer");
  },
  asks: ({ timeout_ms }) => ({
    source: SOURCE,
    timeout_ms,
    process: processOf({}),
    style: "holdfast",
  }),
});
