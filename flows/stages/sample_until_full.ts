import { z } from "zod";
import { AlgorithmChoice, hasSignal, SURPLUS } from "../../algs/mod.ts";
import { ArtifactRef, type Picks, Sampling, type Slab } from "../../data/mod.ts";
import { type Context, defineStage, type RecordingContext, type Stage } from "../../engine/mod.ts";
import { RewardConfig, RewardShaping } from "../../rewards/mod.ts";
import { cutSlabs } from "../../rollouts/mod.ts";
import { checkFailed, isMasked } from "./assign_credit.ts";
import { creditRound } from "./credit_round.ts";
import { SlabCut } from "./rows/draw_prompts.ts";
import { generateSlab } from "./generate_slab.ts";
import { MixedStream, Mixing } from "./rows/mixed_stream.ts";
import { drawsOf, OpenedSplit } from "./rows/open_data.ts";
import { Published } from "./publish_policy.ts";
import { roundMetrics } from "./round_metrics.ts";
import { passesFilter } from "./passes_filter.ts";
import { ScoredGroup, scoreGroup } from "./score_group.ts";

const /** @internal */ drawsSchema = z.strictObject({
  next: z.int().nonnegative().nullable().describe(
    "The next draw; null: every round so far drew prompts_per_round.",
  ),
  pending: z.int().nonnegative().describe(
    "Usable groups past the cut that are reused: they start the next round.",
  ),
  groups: ArtifactRef.nullable().describe("The reused groups as JSON, in draw order."),
});
/**
 * What a round with dynamic sampling passes to the next: where the stream of draws continues, and
 * untrained groups.
 */
export type Draws = z.infer<typeof drawsSchema>;
/** Schema of {@linkcode Draws}. */
export const Draws: typeof drawsSchema = drawsSchema;

/** Before the first round. */
export const NO_DRAWS: Draws = { next: null, pending: 0, groups: null };

const Input = z.strictObject({
  data: OpenedSplit,
  round: z.int().positive(),
  last: z.int().positive().describe("The loop's last round: groups past its cut are surplus."),
  count: z.int().positive().describe("Groups in a full round, and prompts per batch of draws."),
  batches_max: z.int().positive(),
  surplus: z.enum(SURPLUS).describe(
    "What to do with usable groups past the cut.",
  ),
  draws: Draws,
  seed: z.int(),
  slabs: SlabCut,
  published: Published,
  samples_per_prompt: z.int().positive(),
  sampling: Sampling,
  rewards: z.array(RewardConfig).min(1),
  on_failed_sample: z.enum(["drop_group", "drop_sample"]),
  failed_fraction_max: z.number(),
  algorithm: AlgorithmChoice,
  shaping: RewardShaping.optional().describe("Absent: the sum is the reward."),
  mixing: Mixing.optional().describe("Absent: sources are not mixed."),
});
/** @internal */
type Input = z.infer<typeof Input>;

const Output = z.strictObject({
  scored: z.array(ScoredGroup).describe("At most `count`, in draw order."),
  draws: Draws,
  metrics: z.record(z.string(), z.number()).describe("Rewards of all groups that this round drew."),
  drawn: Mixing.shape.drawn.optional(),
  recent: Mixing.shape.recent,
});
/** @internal */
type Output = z.output<typeof Output>;

/**
 * Dynamic sampling: draws batches of prompts until the round has `count` usable groups or
 * `batches_max` batches were drawn. Groups are taken in draw order, reused ones first. Accounts for
 * every draw that it does not pass on. The parts of a batch are recorded as they are created, so a
 * second run continues where the first one ended.
 */
export const sampleUntilFull: Stage<z.input<typeof Input>, Output> = defineStage({
  name: "sample_until_full",
  version: 1,
  input: Input,
  output: Output,
  phase: "generation",
  eager: true,
  attempts_max: 1, // What it calls has separate attempts.
  async run(input, ctx: RecordingContext) {
    const { round, last, count, batches_max, surplus, draws } = input;
    const from = draws.next ?? (round - 1) * count;
    const discards = surplus === "discard";
    const usable = discards ? [] : await pendingOf(draws, ctx);
    const drawn: ScoredGroup[] = [];
    const dropped: string[] = []; // Why, of those that are not usable.
    const mixed = input.mixing && await MixedStream.open({ ...input, ...input.mixing }, ctx);
    while (usable.length < count && drawn.length < batches_max * count) {
      const next = { from: from + drawn.length, count };
      const batch = await sampleBatch({ ...next, picks: mixed?.next(next) }, input, ctx);
      drawn.push(...batch);
      for (const group of batch) {
        const reason = dropReason(input, group);
        if (reason === null) usable.push(group);
        else dropped.push(reason);
      }
    }
    checkFailed(drawn, input.failed_fraction_max);
    const metrics = {
      ...roundMetrics(drawn.filter(({ failed }) => failed === null)),
      "rollouts/batches_drawn": drawn.length / count,
      "rollouts/usable_frac": 1 - dropped.length / Math.max(drawn.length, 1),
    };
    const scored = usable.slice(0, count);
    const past = discards || round === last ? [] : usable.slice(count);
    // A fork may discard groups that its parent would have reused.
    const surplus_count = usable.length - scored.length - past.length +
      (discards ? draws.pending : 0);
    ctx.tally({ read: drawn.length });
    for (const reason of dropped) ctx.tally({ [reason]: 1 });
    if (surplus_count > 0) ctx.tally({ "filtered.surplus": surplus_count });
    if (scored.length < count) {
      ctx.emit({ log: shortText(input, { usable: scored.length, drawn: drawn.length }) });
    }
    const groups = past.length === 0 ? null : await ctx.artifacts.putJson(past);
    const next = { next: from + drawn.length, pending: past.length, groups };
    return { scored, draws: next, metrics, ...mixed?.end(drawn, ctx) };
  },
});

async function pendingOf({ groups }: Draws, ctx: Context): Promise<ScoredGroup[]> {
  return groups === null ? [] : z.array(ScoredGroup).parse(await ctx.artifacts.getJson(groups));
}

/**
 * The groups of the next `count` draws, in draw order. Each slab is scored while others are
 * generated.
 */
async function sampleBatch(
  draws: { from: number; count: number; picks?: Picks },
  input: Input,
  ctx: Context,
): Promise<ScoredGroup[]> {
  const { data, seed, slabs } = input;
  const cut = cutSlabs(await drawsOf(data, { seed, ...draws }, ctx), slabs);
  return (await Promise.all(cut.map((slab) => sampleSlab(slab, input, ctx)))).flat();
}

async function sampleSlab(item: Slab, input: Input, ctx: Context): Promise<ScoredGroup[]> {
  const { published, samples_per_prompt, sampling, seed, rewards, on_failed_sample } = input;
  const shaped = input.shaping && { shaping: input.shaping };
  const work = { item, published, samples_per_prompt, sampling, seed };
  const groups = await ctx.call(generateSlab, work, { id: item.id });
  return await Promise.all(
    groups.map((item) =>
      ctx.call(scoreGroup, { item, rewards, on_failed_sample, ...shaped }, { id: item.id })
    ),
  );
}

/** Why a group has no signal; null: it has one. */
function dropReason(
  { algorithm, shaping }: Pick<Input, "algorithm" | "shaping">,
  group: ScoredGroup,
): string | null {
  if (group.failed !== null) return `failed.${group.failed}`;
  if (group.lengths.every((length) => length === 0)) return "filtered.no_tokens";
  if (isMasked(group, algorithm)) return "filtered.truncated";
  if (shaping?.filter) {
    return passesFilter(group, shaping.filter) ? null : "filtered.filter_score";
  }
  return hasSignal(algorithm, creditRound([group])) ? null : "filtered.zero_advantage";
}

function shortText(
  { round, count, batches_max }: Input,
  { usable, drawn }: { usable: number; drawn: number },
): string {
  const then = usable === 0
    ? "nothing is trained, and the policy is carried over"
    : "the round trains on these";
  return `round ${round} has ${usable} of ${count} groups with a signal after ${drawn} draws in ` +
    `${batches_max} batches, the maximum ` +
    `per round: ${then}`;
}
