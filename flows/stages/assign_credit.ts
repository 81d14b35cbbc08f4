import { z } from "zod";
import { AlgorithmChoice, assignAdvantages } from "../../algs/mod.ts";
import { ArtifactRef, type Batch, type Column, encodeColumn } from "../../data/mod.ts";
import { type ArtifactStore, BadDataError, defineStage } from "../../engine/mod.ts";
import { ScoredGroup } from "./score_group.ts";

/** What a round trains on, and what became of its draws. */
export const Credit = z.strictObject({
  batch: ArtifactRef.nullable().describe("null: no group was usable, the policy is carried over."),
  trained: z.int(),
  filtered: z.int(),
  failed: z.int(),
});
export type Credit = z.infer<typeof Credit>;

/**
 * Turns the rewards of a whole round into advantages and makes the training batch. Groups stand in draw order. A group that failed is
 * left out; if no group has a nonzero advantage, nothing is trained. Pure but for one artifact: safe to run twice.
 */
export const assignCredit = defineStage({
  name: "assign_credit",
  version: 1,
  input: z.strictObject({
    scored: z.array(ScoredGroup),
    tokens: z.record(z.string(), ArtifactRef),
    algorithm: AlgorithmChoice,
    temperature: z.number().positive(),
    updates_per_batch: z.int().positive(),
    failed_fraction_max: z.number(),
  }),
  output: Credit,
  phase: "training",
  eager: true,
  async run({ scored, tokens, algorithm, temperature, updates_per_batch, failed_fraction_max }, ctx) {
    const ordered = scored.toSorted((a, b) => a.group.draw - b.group.draw);
    const alive = ordered.filter((group) => group.failed === null);
    const broken = ordered.filter((group) => group.failed !== null);
    if (broken.length > failed_fraction_max * ordered.length) throw tooManyFailed(broken, ordered.length);
    for (const group of broken) ctx.tally({ [`failed.${group.failed}`]: 1 });
    const metrics = roundMetrics(alive);
    ctx.emit({ metrics });
    ctx.note("round_metrics", ctx.key, metrics); // Shown ones may be lost; checkpoints.keep_best decides by these.
    const reward = alive.flatMap((group) => group.rewards);
    const advantage = reward.length ? assignAdvantages(algorithm, creditRound(alive)) : [];
    const usable = advantage.some((a) => (Array.isArray(a) ? a.some((x) => x !== 0) : a !== 0));
    if (!usable) {
      if (alive.length > 0) ctx.tally({ "filtered.zero_advantage": alive.length });
      return { batch: null, trained: 0, filtered: alive.length, failed: broken.length };
    }
    const columns: Record<string, Column> = { advantage: await columnOf(advantage, ctx.artifacts) };
    for (const [name, artifact] of Object.entries(tokens)) columns[name] = { kind: "token", artifact };
    const batch: Batch = {
      kind: "trajectories",
      groups: alive.map(({ group }) => group),
      columns,
      staleness: [],
      temperature,
      coef: {},
      updates: splitEvenly(alive.length, updates_per_batch),
    };
    ctx.tally({ trained: alive.length });
    return { batch: await ctx.artifacts.putJson(batch), trained: alive.length, filtered: 0, failed: broken.length };
  },
});

/** One number per sequence as it is; one per token as an artifact. */
async function columnOf(values: number[] | number[][], artifacts: ArtifactStore): Promise<Column> {
  const perToken = values.filter((value) => Array.isArray(value));
  if (perToken.length === 0) return { kind: "sequence", values: values as number[] };
  const bytes = encodeColumn(perToken.map((row) => Float32Array.from(row)));
  return { kind: "token", artifact: await artifacts.put(bytes) };
}

/** The round as credit sees it: ragged, in draw order. N sequences. */
function creditRound(groups: ScoredGroup[]) {
  return {
    reward: groups.flatMap((group) => group.rewards), // [N]
    group: groups.flatMap((group, g) => group.rewards.map(() => g)), // [N]
    stop: groups.flatMap((group) => group.stops), // [N]
    length: groups.flatMap((group) => group.lengths), // [N]
  };
}

/** Indices 0..n-1 cut into `parts` runs whose lengths differ by at most one; empty runs are left out. */
export function splitEvenly(n: number, parts: number): number[][] {
  const cut = (i: number) => Math.floor((i * n) / parts);
  return Array.from({ length: parts }, (_, i) => Array.from({ length: cut(i + 1) - cut(i) }, (_, j) => cut(i) + j))
    .filter((run) => run.length > 0);
}

function roundMetrics(groups: ScoredGroup[]): Record<string, number> {
  const rewards = groups.flatMap((group) => group.rewards);
  const lengths = groups.flatMap((group) => group.lengths);
  const stops = groups.flatMap((group) => group.stops);
  if (rewards.length === 0) return {};
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const center = mean(rewards);
  return {
    "reward/mean": center,
    "reward/std": Math.sqrt(mean(rewards.map((r) => (r - center) ** 2))),
    "reward/zero_std_frac": mean(groups.map((group) => (group.rewards.every((r) => r === group.rewards[0]) ? 1 : 0))),
    "completions/length_mean": mean(lengths),
    "completions/length_max": Math.max(...lengths),
    "completions/truncated_frac": mean(stops.map((stop) => (stop === "length" ? 1 : 0))),
    ...partMetrics(groups, mean),
  };
}

function partMetrics(groups: ScoredGroup[], mean: (values: number[]) => number): Record<string, number> {
  const names = [...new Set(groups.flatMap((group) => Object.keys(group.parts)))];
  return Object.fromEntries(
    names.map((name) => [`reward/${name}/mean`, mean(groups.flatMap((g) => g.parts[name] ?? []))]),
  );
}

function tooManyFailed(broken: ScoredGroup[], all: number): BadDataError {
  const first = broken[0]!;
  return new BadDataError(
    `Cannot train this round as ${broken.length} of ${all} groups failed, more than rollouts.failed_fraction_max allows: ` +
      `draw ${first.group.draw} failed with ${first.failed}: ${first.detail ?? "no detail"}`,
    { draws: broken.map(({ group }) => group.draw) },
  );
}
