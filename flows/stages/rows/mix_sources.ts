import { z } from "zod";
import { Mixture } from "../../../configs/mod.ts";
import {
  type Picks as PickedSources,
  pickSources,
  recentAfter,
  type RecentRewards as Recent,
  sourceSizes,
  steeredWeights,
  weightAt,
} from "../../../data/mod.ts";
import {
  BadDataError,
  defineStage,
  type RecordingContext,
  type Stage,
} from "../../../engine/mod.ts";
import { OpenedSplit, openedTable } from "./open_data.ts";
import { ScoredGroup } from "../score_group.ts";

/** Schema of the sources that a round's draws read. */
export const Picks: z.ZodType<PickedSources> = z.strictObject({
  sources: z.array(z.int().nonnegative()).describe("The source of each draw."),
  drawn: z.array(z.int().nonnegative()).describe("Draws of each source before them."),
});
/** Schema of each source's recent mean reward; null: it was not scored yet. */
export const RecentRewards: z.ZodType<Recent> = z.array(z.number().nullable());

const Input = z.strictObject({
  data: OpenedSplit,
  round: z.int().positive(),
  count: z.int().positive(),
  seed: z.int(),
  mixture: Mixture,
  drawn: z.array(z.int().nonnegative()),
  recent: RecentRewards.optional(),
});
/** @internal */
type Input = z.infer<typeof Input>;
const Output = z.strictObject({ picks: Picks, drawn: z.array(z.int().nonnegative()) });
/** @internal */
type Output = z.infer<typeof Output>;

/** What `show` says about a source of a mixture. `repeated`: draws of rows drawn before. */
export type MixedSource = {
  name: string;
  rows: number;
  drawn: number;
  repeated: number;
  /** Its share of the last round's draws, as asked for. */
  share: number;
  /** Its recent mean reward; absent: nothing follows it. */
  recent?: number | null;
};

/** The weights of a round's draws. @throws {BadDataError} If no row is left of a source. */
export async function roundWeights(
  { data, mixture, round, recent }: Pick<Input, "data" | "mixture" | "round" | "recent">,
  ctx: RecordingContext,
): Promise<{ weights: number[]; sizes: readonly number[] }> {
  const sizes = sourceSizes(await openedTable(data, ctx));
  const { sources, curriculum } = mixture;
  const empty = sources.find((_, i) => !sizes[i]);
  if (empty !== undefined) {
    throw new BadDataError(
      `Cannot mix the source '${empty.name}' because it has no row left. Fix: start a new run ` +
        "without it, or drop fewer of its rows (data.on_long_prompt, duplicates)",
      { split: data.split },
    );
  }
  const weights = sources.map(({ weight }) => weightAt(weight, round));
  const steered = curriculum && recent ? steeredWeights(weights, recent, curriculum) : weights;
  return { weights: steered, sizes };
}

/** How many draws of each source there are after these. */
export function drawnAfter({ sources, drawn }: PickedSources): number[] {
  const after = [...drawn];
  for (const source of sources) after[source]!++;
  return after;
}

/**
 * Chooses the source of each of a round's draws. A function of the seed, the draws' numbers, the
 * weights and how often each source was drawn before: safe to run twice.
 */
export const mixSources: Stage<z.input<typeof Input>, Output> = defineStage({
  name: "mix_sources",
  version: 1,
  input: Input,
  output: Output,
  phase: "generation",
  eager: true,
  async run(input, ctx: RecordingContext) {
    const { round, count, seed, drawn } = input;
    const { weights, sizes } = await roundWeights(input, ctx);
    const sources = pickSources(weights, { seed, from: (round - 1) * count, count });
    const picks = { sources, drawn };
    const after = drawnAfter(picks);
    reportMixture(input, { weights, sizes, after }, ctx);
    return { picks, drawn: after };
  },
});

/** Records and shows what a round drew of each source. */
export function reportMixture(
  { round, mixture, drawn, recent }: Pick<Input, "round" | "mixture" | "drawn" | "recent">,
  { weights, sizes, after }: { weights: number[]; sizes: readonly number[]; after: number[] },
  ctx: RecordingContext,
): void {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const sources = mixture.sources.map(({ name }, i): MixedSource => ({
    name,
    rows: sizes[i]!,
    drawn: after[i]!,
    repeated: Math.max(0, after[i]! - sizes[i]!),
    share: weights[i]! / total,
    recent: recent?.[i],
  }));
  ctx.note("mixture", ctx.key, { round, sources });
  ctx.emit({
    metrics: Object.fromEntries(sources.flatMap((source, i) => [
      [`data/${source.name}/share`, source.share],
      [`data/${source.name}/draws`, source.drawn - drawn[i]!],
      [`data/${source.name}/epochs`, source.drawn / source.rows],
      [`data/${source.name}/repeated`, source.repeated],
    ])),
  });
  for (const [i, { name, rows, drawn: now }] of sources.entries()) {
    if (drawn[i]! <= rows && now > rows) {
      ctx.emit({ log: `the ${rows} rows of source ${name} are exhausted: they are drawn again` });
    }
  }
}

const SteerInput = z.strictObject({
  mixture: Mixture,
  recent: RecentRewards,
  picks: Picks,
  round: z.int().positive(),
  scored: z.array(ScoredGroup),
});
/** @internal */
type SteerInput = z.input<typeof SteerInput>;

/** The recent mean reward of each source after a round. Pure: safe to run twice. */
export const steerMixture: Stage<SteerInput, Recent> = defineStage({
  name: "steer_mixture",
  version: 1,
  input: SteerInput,
  output: RecentRewards,
  phase: "generation",
  eager: true,
  run({ mixture, recent, picks, round, scored }) {
    const first = (round - 1) * picks.sources.length;
    return steered({ mixture, recent, scored, sourceOf: (draw) => picks.sources[draw - first]! });
  },
});

/** Recent means after the groups of a round's own draws. Failed groups do not count. */
export function steered(
  { mixture, recent, scored, sourceOf }: {
    mixture: Mixture;
    recent: Recent;
    scored: readonly ScoredGroup[];
    sourceOf: (draw: number) => number;
  },
): Recent {
  const rewards = mixture.sources.map((_, source) =>
    scored.flatMap((one) =>
      one.failed === null && sourceOf(one.group.draw) === source ? one.rewards : []
    )
  );
  return mixture.curriculum ? recentAfter(recent, rewards, mixture.curriculum) : recent;
}
