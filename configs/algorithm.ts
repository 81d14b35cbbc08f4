import { z } from "zod";
import { GrpoConfig, SftConfig } from "./placeholders.ts";

/** Algorithms of the online flow: they compare the samples of a group. */
export const OnlineAlgorithm = z.discriminatedUnion("name", [
  z.strictObject({
    name: z.literal("grpo").describe("Group relative policy optimisation."),
    ...GrpoConfig.shape,
  }),
]);
export type OnlineAlgorithm = z.infer<typeof OnlineAlgorithm>;

/** Algorithms of the supervised flow. */
export const SupervisedAlgorithm = z.discriminatedUnion("name", [
  z.strictObject({
    name: z.literal("sft").describe("Supervised fine-tuning: the completion's log-likelihood."),
    ...SftConfig.shape,
  }),
]);
export type SupervisedAlgorithm = z.infer<typeof SupervisedAlgorithm>;

/** The smallest group that an algorithm can learn from. */
export const GROUP_MIN: Record<OnlineAlgorithm["name"] | SupervisedAlgorithm["name"], number> = { grpo: 2, sft: 1 };
