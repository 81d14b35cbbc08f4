import type { ScoredGroup } from "./score_group.ts";

/** What a round is judged by, over all groups that were drawn in it and did not fail. */
export function roundMetrics(groups: ScoredGroup[]): Record<string, number> {
  const rewards = groups.flatMap((group) => group.rewards);
  const lengths = groups.flatMap((group) => group.lengths);
  const stops = groups.flatMap((group) => group.stops);
  if (rewards.length === 0) return {};
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const center = mean(rewards);
  return {
    "reward/mean": center,
    "reward/std": Math.sqrt(mean(rewards.map((r) => (r - center) ** 2))),
    "reward/zero_std_frac": mean(
      groups.map((group) => (group.rewards.every((r) => r === group.rewards[0]) ? 1 : 0)),
    ),
    "completions/length_mean": mean(lengths),
    "completions/length_max": Math.max(...lengths),
    "completions/truncated_frac": mean(stops.map((stop) => (stop === "length" ? 1 : 0))),
    ...partMetrics(groups, mean),
  };
}

function partMetrics(
  groups: ScoredGroup[],
  mean: (values: number[]) => number,
): Record<string, number> {
  const names = [...new Set(groups.flatMap((group) => Object.keys(group.parts)))];
  return Object.fromEntries(
    names.map((name) => [`reward/${name}/mean`, mean(groups.flatMap((g) => g.parts[name] ?? []))]),
  );
}
