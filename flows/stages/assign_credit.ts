import { z } from "zod";
import {
  AlgorithmChoice,
  type Assigned,
  creditOf,
  type CreditRound,
  maskedOf,
  masksTruncated,
  OpenedAlgorithm,
  readsTokenRewards,
  teaches,
} from "../../algs/mod.ts";
import { ArtifactRef, type Batch, type Column } from "../../data/mod.ts";
import { BadDataError, type Context, defineStage, type Stage } from "../../engine/mod.ts";
import { RewardConfig } from "../../rewards/mod.ts";
import { Trainer } from "../resources.ts";
import { creditRound, RoundTokens } from "./credit_round.ts";
import { updatesOf } from "./optimizer_steps.ts";
import { rewardParts } from "./reward_parts.ts";
import { roundMetrics } from "./round_metrics.ts";
import { sampledBy, ScoredGroup } from "./score_group.ts";

const Coefficients = z.record(z.string(), z.number());
const Columns = z.record(z.string(), ArtifactRef);

const /** @internal */ roundCreditSchema = z.strictObject({
  batch: ArtifactRef.nullable().describe("null: no group was usable, the policy is carried over."),
  value_batch: ArtifactRef.nullable().optional().describe(
    "The value model's; absent: no value model.",
  ),
  coef: Coefficients.optional().describe(
    "Coefficients of the next round; absent: no coefficient changes during the run.",
  ),
  trained: z.int(),
  filtered: z.int(),
  failed: z.int(),
});
/** What a round trains on, and what happened to its draws. */
export type RoundCredit = z.infer<typeof roundCreditSchema>;
/** Schema of {@linkcode RoundCredit}. */
export const RoundCredit: typeof roundCreditSchema = roundCreditSchema;

const Input = z.strictObject({
  scored: z.array(ScoredGroup),
  tokens: Columns,
  values: Columns.optional().describe("The value model's columns; absent: no value model."),
  coef: Coefficients.optional().describe(
    "Coefficients of this round; absent: none changes " +
      "during the run.",
  ),
  value_warmup: z.strictObject({ trained: z.int().nonnegative(), rounds: z.int().positive() })
    .optional().describe(
      "The policy waits until the value model has `trained` on the batches of this many `rounds`.",
    ),
  algorithm: AlgorithmChoice,
  rewards: z.array(RewardConfig).min(1).optional().describe(
    "Absent: the algorithm reads only their sum.",
  ),
  opened: OpenedAlgorithm.optional().describe("The algorithm, if it is in Python."),
  temperature: z.number().positive(),
  updates_per_batch: z.int().positive(),
  epochs_per_batch: z.int().positive(),
  failed_fraction_max: z.number(),
  policy_number: z.int().nonnegative().describe("Version of the trained policy."),
  metrics: z.record(z.string(), z.number()).optional().describe(
    "Rewards of all groups that the round drew, if only some of them are `scored`.",
  ),
});
/** @internal */
type Input = z.infer<typeof Input>;

/**
 * Turns the rewards of a whole round into advantages and into a value model's targets, and creates
 * the training batch. Groups are in draw order. Failed groups are left out; without a signal,
 * nothing is trained. Pure except for its artifacts: safe to run twice.
 */
export const assignCredit: Stage<z.input<typeof Input>, RoundCredit> = defineStage({
  name: "assign_credit",
  version: 1,
  input: Input,
  output: RoundCredit,
  phase: "training",
  eager: true,
  async run(input, ctx) {
    const ordered = input.scored.toSorted((a, b) => a.group.draw - b.group.draw);
    const alive = ordered.filter((group) => group.failed === null);
    const broken = ordered.filter((group) => group.failed !== null);
    checkFailed(ordered, input.failed_fraction_max);
    for (const group of broken) ctx.tally({ [`failed.${group.failed}`]: 1 });
    const tokens = new RoundTokens(alive, ctx.artifacts);
    const assigned = alive.length === 0 ? null : await assign(input, { alive, tokens }, ctx);
    const masked = maskedOf(input.algorithm, creditRound(alive)); // [N]
    const silent = creditRound(alive).length.map((tokens, i) => masked[i]! || tokens === 0); // [N]
    const metrics = {
      ...(input.metrics ?? roundMetrics(alive)),
      ...(masksTruncated(input.algorithm) &&
        { "completions/masked": masked.filter((is) => is).length }),
      ...assigned?.metrics,
    };
    ctx.emit({ metrics, version: sampledBy(ordered) });
    const waits = input.value_warmup !== undefined &&
      input.value_warmup.trained < input.value_warmup.rounds;
    const policyLearns = !waits && teaches(assigned?.advantage ?? [], silent);
    const valueLearns = input.values !== undefined &&
      alive.some(({ lengths }) => lengths.some((length) => length > 0));
    const used = policyLearns || valueLearns;
    const cut = valueLearns ? 0 : alive.filter((group) => isMasked(group, input.algorithm)).length;
    const trained = used ? alive.length - cut : 0;
    if (trained > 0) ctx.tally({ trained });
    if (cut > 0) ctx.tally({ "filtered.truncated": cut });
    if (!used && alive.length > cut) ctx.tally({ "filtered.zero_advantage": alive.length - cut });
    const round = { alive, tokens, assigned: assigned! };
    // The value model's targets are not masked.
    const whole = used ? await batchOf(input, round, ctx) : null;
    const policys = whole && policyLearns ? withoutMasked(whole, { masked, silent }, ctx) : null;
    return {
      batch: policys && await ctx.artifacts.putJson(policys),
      value_batch: input.values &&
        (whole && valueLearns ? await ctx.artifacts.putJson(whole) : null),
      coef: input.coef && { ...coefOf(input), ...assigned?.coef },
      trained,
      filtered: alive.length - trained,
      failed: broken.length,
    };
  },
});

/** Whether the policy's loss leaves out every completion of a group that has a token. */
export function isMasked(group: ScoredGroup, algorithm: AlgorithmChoice): boolean {
  const masked = maskedOf(algorithm, creditRound([group]));
  return masked.includes(true) && group.lengths.every((length, i) => masked[i] || length === 0);
}

/**
 * The batch with its masked sequences listed, and without the optimizer steps that have no token
 * left.
 */
function withoutMasked(
  batch: TrajectoryBatch,
  { masked, silent }: { masked: readonly boolean[]; silent: readonly boolean[] },
  ctx: Pick<Context, "emit">,
): TrajectoryBatch {
  const places = [...masked.keys()].filter((i) => masked[i]);
  if (places.length === 0) return batch;
  const owner = batch.groups.flatMap(({ samples }, group) => samples.map(() => group)); // [N]
  const heard = new Set(owner.filter((_, i) => !silent[i]));
  const updates = batch.updates.filter((groups) => groups.some((group) => heard.has(group)));
  const lost = batch.updates.length - updates.length;
  if (lost > 0) {
    const log = `${lost} of ${batch.updates.length} optimizer steps are skipped: mask_truncated ` +
      "leaves nothing to train on";
    ctx.emit({ log });
  }
  return { ...batch, masked: places, updates };
}

/**
 * Coefficients of this round. If the previous round lacks one of the file's coefficients, as after
 * a fork to the file, it starts with the file's value.
 */
function coefOf({ coef, opened }: Input): Record<string, number> {
  return { ...opened?.coef, ...coef };
}

/** What the algorithm computes from a round of at least one group. */
async function assign(
  input: Input,
  { alive, tokens }: Pick<Round, "alive" | "tokens">,
  ctx: Context,
): Promise<Assigned> {
  const round: CreditRound = creditRound(alive);
  const token_reward = await tokens.rewards({ functions: readsTokenRewards(input.algorithm) });
  const columns = await tokens.columns({ ...input.tokens, ...input.values }, round);
  const { opened, rewards } = input;
  const whole = {
    ...round,
    token_reward,
    parts: rewards && rewardParts(alive, rewards, token_reward),
    ...columns,
    coef: coefOf(input),
  };
  if (opened === undefined) return creditOf(input.algorithm, whole);
  return await ctx.resource(Trainer).credit(
    { algorithm: opened.source, round: await ctx.artifacts.putJson(whole) },
    ctx,
  );
}

type Round = { alive: ScoredGroup[]; tokens: RoundTokens; assigned: Assigned };
type TrajectoryBatch = Extract<Batch, { kind: "trajectories" }>;

async function batchOf(
  input: Input,
  { alive, tokens, assigned }: Round,
  ctx: Context,
): Promise<TrajectoryBatch> {
  const columns: Record<string, Column> = { advantage: await tokens.toColumn(assigned.advantage) };
  if (assigned.returns) columns.returns = await tokens.toColumn(assigned.returns);
  for (const [name, artifact] of Object.entries(input.tokens)) {
    columns[name] = { kind: "token", artifact };
  }
  if (input.values?.values) columns.old_values = { kind: "token", artifact: input.values.values };
  const { updates_per_batch: updates, epochs_per_batch: epochs } = input;
  return {
    kind: "trajectories",
    groups: alive.map(({ group }) => group),
    columns,
    staleness: stalenessOf(alive, input.policy_number),
    temperature: input.temperature,
    coef: coefOf(input),
    updates: updatesOf(alive.length, { updates, epochs }, ctx),
  };
}

/** Policy versions between sampling and training, [N]; absent if all are 0. */
function stalenessOf(groups: ScoredGroup[], policy_number: number): number[] {
  const all = groups.flatMap(({ rewards, sampled_at }) =>
    rewards.map(() => policy_number - sampled_at)
  );
  return all.some((versions) => versions > 0) ? all : [];
}

/** @throws {BadDataError} If too large a share of the groups failed. */
export function checkFailed(groups: ScoredGroup[], failed_fraction_max: number): void {
  const broken = groups.filter((group) => group.failed !== null);
  if (broken.length <= failed_fraction_max * groups.length) return;
  const first = broken[0]!;
  throw new BadDataError(
    `Cannot train this round because ${broken.length} of ${groups.length} groups failed, ` +
      "more than rollouts.failed_fraction_max allows: " +
      `draw ${first.group.draw} failed with ${first.failed}: ${first.detail ?? "no detail"}`,
    { draws: broken.map(({ group }) => group.draw) },
  );
}
