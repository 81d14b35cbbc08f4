/** Weights of sources that follow their recent reward. */
import { z } from "zod";
import { setting } from "../setting.ts";
import { ROW_FACTS } from "../source_config.ts";

const /** @internal */ curriculumConfigSchema = z.strictObject({
  toward: z.enum(["signal", "target"]).default("signal").describe(
    "signal: a source counts by 4p(1-p), where p is its recent mean reward (from 0 to 1). " +
      "target: by how near that mean is to `target`.",
  ).register(setting, ROW_FACTS),
  target: z.number().default(0.5).describe("The mean reward that is best to learn from.").register(
    setting,
    ROW_FACTS,
  ),
  width: z.number().positive().default(0.5).describe(
    "Distance from the target at which a source counts least.",
  ).register(setting, ROW_FACTS),
  memory: z.number().min(0).lt(1).default(0.9).describe(
    "How much of the recent mean stays when a round's mean is added.",
  ).register(setting, ROW_FACTS),
  floor: z.number().positive().max(1).default(0.1).describe(
    "The least share of its weight that a source keeps.",
  ).register(setting, ROW_FACTS),
});
/** How the weights of sources follow their recent reward. */
export type CurriculumConfig = z.infer<typeof curriculumConfigSchema>;
/** Schema of {@linkcode CurriculumConfig}. */
export const CurriculumConfig: typeof curriculumConfigSchema = curriculumConfigSchema;

/** The recent mean reward of each source; null: it was not scored yet. */
export type RecentRewards = (number | null)[];

/** Weights after steering. A source that was not scored yet keeps its whole weight. */
export function steeredWeights(
  weights: readonly number[],
  recent: RecentRewards,
  { toward, target, width, floor }: CurriculumConfig,
): number[] {
  return weights.map((weight, source) => {
    const mean = recent[source] ?? null;
    if (mean === null) return weight;
    const p = Math.min(1, Math.max(0, mean));
    const near = toward === "signal"
      ? 4 * p * (1 - p)
      : Math.max(0, 1 - Math.abs(mean - target) / width);
    return weight * (floor + (1 - floor) * near);
  });
}

/** The recent means after a round. `rewards`: of each source, all that it got in the round. */
export function recentAfter(
  recent: RecentRewards,
  rewards: readonly (readonly number[])[],
  { memory }: CurriculumConfig,
): RecentRewards {
  return recent.map((before, source) => {
    const got = rewards[source]!;
    if (got.length === 0) return before;
    const mean = got.reduce((sum, reward) => sum + reward, 0) / got.length;
    return before === null ? mean : memory * before + (1 - memory) * mean;
  });
}
