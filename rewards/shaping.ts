import { z } from "zod";
import { setting, type SettingFacts } from "../data/mod.ts";
import { Clip } from "./entries/entry_settings.ts";

const FACTS: SettingFacts = { numerics: false, fork: "free", resume: "refused" };

const Truncated = z.strictObject({
  add: z.number().optional().describe("Added to its reward.").register(setting, FACTS),
  set: z.number().optional().describe("Replaces its reward.").register(setting, FACTS),
  times: z.number().optional().describe("Multiplies its reward.").register(setting, FACTS),
}).refine(
  (amounts) => Object.values(amounts).filter((amount) => amount !== undefined).length === 1,
  "needs either `add`, `set` or `times`",
);

const Filter = z.strictObject({
  by: z.string().min(1).describe(
    "LABEL of a reward, or LABEL/NUMBER for a number that it returns beside its score.",
  ).register(setting, FACTS),
  above: z.number().optional().describe(
    "A group's mean must be above it. Absent, and without `below`: the values must differ.",
  ).register(setting, FACTS),
  below: z.number().optional().describe("A group's mean must be below it.")
    .register(setting, FACTS),
}).refine(
  ({ above, below }) => above === undefined || below === undefined || above < below,
  { path: ["above"], message: "must be less than `below`" },
);

const /** @internal */ rewardShapingSchema = z.strictObject({
  truncated: Truncated.optional().describe(
    "What a completion gets that the token limit cut. Absent: its reward.",
  ).register(setting, FACTS),
  token_cost: z.number().positive().optional().describe(
    "Subtracted from the reward for each sampled token. Absent: tokens cost nothing.",
  ).register(setting, FACTS),
  clip: Clip.optional().describe(
    "[low, high]: the limits of a sample's reward, applied last. Absent: no limit.",
  ).register(setting, FACTS),
  filter: Filter.optional().describe(
    "What decides whether a group is usable for dynamic sampling, in place of its rewards. " +
      "Absent: its rewards.",
  ).register(setting, FACTS),
});
/** What happens to the sum of a sample's rewards in training. Evaluations do not read it. */
export type RewardShaping = z.infer<typeof rewardShapingSchema>;
/** Schema of {@linkcode RewardShaping}. */
export const RewardShaping: typeof rewardShapingSchema = rewardShapingSchema;
