import { type CheckpointsConfig, metricName } from "../../configs/mod.ts";

/** The facts of a checkpoint that decide how long it is kept. */
export type Candidate = {
  version: string;
  number: number;
  round: number | null;
  metric: number | null;
  /** As it is recorded; absent: of the configured one. */
  metric_name?: string;
};
export type KeepPolicy = Pick<CheckpointsConfig, "keep_last" | "keep_every" | "keep_best">;
/**
 * Why a checkpoint is kept. `in_use`: the oldest version that unfinished work needs is rebuilt from
 * it.
 */
export type KeepReason = "last" | "every" | "best" | "in_use";

/**
 * Which checkpoints are kept, and why; all others are deleted. `candidates` in the order in which
 * they were saved. `oldest_in_use`: number of the oldest version that unfinished work may need; the
 * newest checkpoint at or before it is kept.
 */
export function kept(
  candidates: readonly Candidate[],
  policy: KeepPolicy,
  oldest_in_use: number,
): Map<string, KeepReason[]> {
  const reasons = new Map<string, KeepReason[]>();
  const keep = (reason: KeepReason, chosen: readonly Candidate[]) => {
    for (const { version } of chosen) {
      reasons.set(version, [...(reasons.get(version) ?? []), reason]);
    }
  };
  keep("last", candidates.slice(-policy.keep_last));
  const { keep_every, keep_best } = policy;
  if (keep_every !== null) {
    keep("every", candidates.filter(({ round }) => round !== null && round % keep_every === 0));
  }
  if (keep_best !== null) keep("best", best(candidates, keep_best));
  const before = candidates.filter(({ number }) => number <= oldest_in_use);
  keep(
    "in_use",
    before.length === 0 ? [] : [before.reduce((a, b) => (b.number >= a.number ? b : a))],
  );
  return reasons;
}

/**
 * The best `count` of the checkpoints that have the metric; if equal, the newer one. A resume or a
 * fork may have changed the metric: values of the former one cannot be compared.
 */
function best(
  candidates: readonly Candidate[],
  { metric, mode, count }: NonNullable<KeepPolicy["keep_best"]>,
): Candidate[] {
  const sign = mode === "max" ? -1 : 1;
  const wanted = metricName(metric);
  return candidates.map((candidate, at) => ({ candidate, at, value: candidate.metric }))
    .filter(({ value }) => value !== null && !Number.isNaN(value))
    .filter(({ candidate: { metric_name = wanted } }) => metric_name === wanted)
    .toSorted((a, b) => sign * (a.value! - b.value!) || b.at - a.at)
    .slice(0, count).map(({ candidate }) => candidate);
}
