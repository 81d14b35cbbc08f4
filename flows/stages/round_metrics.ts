import { metricName } from "../../configs/mod.ts";
import type { Policy } from "../../data/mod.ts";
import type { RecordedMetrics, RecordingContext } from "../../engine/mod.ts";
import { VersionNote } from "../../workers/mod.ts";
import type { ScoredGroup } from "./score_group.ts";
import { stepMetrics } from "./train_policy.ts";

/** The metrics of a round, over all groups that were drawn in it and did not fail. */
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

/**
 * The mean of each part over the samples that have it, and the share of samples to which a reward
 * does not apply, if there are any.
 */
function partMetrics(
  groups: ScoredGroup[],
  mean: (values: number[]) => number,
): Record<string, number> {
  const names = [...new Set(groups.flatMap((group) => Object.keys(group.parts)))];
  return Object.fromEntries(names.flatMap((name): [string, number][] => {
    const values = groups.flatMap((group) => group.parts[name] ?? []);
    const known = values.filter((value) => value !== null);
    const none = (values.length - known.length) / values.length;
    return [
      ...(known.length === 0 ? [] : [[`reward/${name}/mean`, mean(known)] as [string, number]]),
      ...(none === 0 || name.includes("/")
        ? []
        : [[`reward/${name}/none_frac`, none] as [string, number]]),
    ];
  }));
}

/**
 * What was recorded of the round of the running stage so far. `models`: metrics of their last steps
 * count too.
 */
export async function roundMetricsSoFar(
  ctx: RecordingContext,
  models: readonly Policy[] = [],
): Promise<Record<string, number>> {
  await ctx.durable(); // Else the round's rows may not be there yet.
  const scope = ctx.key.split("/").slice(0, -1).join("/");
  const metrics: Record<string, number> = {};
  const rows = await ctx.read({ kinds: ["metrics"], prefix: `${scope}/` });
  for (const { value } of rows) Object.assign(metrics, (value as RecordedMetrics).metrics);
  for (const { version } of models) {
    const versions = await ctx.read({ kinds: ["note/version"], prefix: version });
    const note = versions.map(({ value }) => VersionNote.parse(value)).at(-1);
    if (note && note.steps.length > 0) Object.assign(metrics, stepMetrics(note));
  }
  return metrics;
}

/** The value of the metric of this name; null: the round has none. */
export function valueOf(metrics: Record<string, number>, metric: string): number | null {
  return metrics[metricName(metric)] ?? null;
}
