import { z } from "zod";
import { AlgorithmChoice, type Assigned, creditOf, type CreditRound, OpenedAlgorithm } from "../../algs/mod.ts";
import { ArtifactRef, type Batch, type Column } from "../../data/mod.ts";
import { BadDataError, type Context, defineStage } from "../../engine/mod.ts";
import { Trainer } from "../resources.ts";
import { creditRound, RoundTokens } from "./credit_round.ts";
import { updatesOf } from "./optimizer_steps.ts";
import { roundMetrics } from "./round_metrics.ts";
import { sampledBy, ScoredGroup } from "./score_group.ts";

const Coefficients = z.record(z.string(), z.number());
const Columns = z.record(z.string(), ArtifactRef);

/** What a round trains on, and what became of its draws. */
export const Credit = z.strictObject({
  batch: ArtifactRef.nullable().describe("null: no group was usable, the policy is carried over."),
  value_batch: ArtifactRef.nullable().optional().describe("The value model's; absent: there is no value model."),
  coef: Coefficients.optional().describe("Coefficients of the next round; absent: none changes during the run."),
  trained: z.int(),
  filtered: z.int(),
  failed: z.int(),
});
export type Credit = z.infer<typeof Credit>;

const Input = z.strictObject({
  scored: z.array(ScoredGroup),
  tokens: Columns,
  values: Columns.optional().describe("The value model's columns; absent: there is none."),
  coef: Coefficients.optional().describe("Of this round; absent: none changes during the run."),
  value_warmup: z.strictObject({ trained: z.int().nonnegative(), rounds: z.int().positive() }).optional().describe(
    "The policy waits until the value model has `trained` on the batches of as many `rounds`.",
  ),
  algorithm: AlgorithmChoice,
  opened: OpenedAlgorithm.optional().describe("The algorithm, where it is in Python."),
  temperature: z.number().positive(),
  updates_per_batch: z.int().positive(),
  epochs_per_batch: z.int().positive().optional().describe("Absent: 1."),
  failed_fraction_max: z.number(),
  policy_number: z.int().nonnegative().optional().describe("Of the policy that is trained; absent in older records."),
  metrics: z.record(z.string(), z.number()).optional().describe(
    "Of all groups that the round drew, where only some of them are `scored`.",
  ),
});
type Input = z.infer<typeof Input>;

/**
 * Turns the rewards of a whole round into advantages, and into what a value model learns, and makes the training batch. Groups
 * stand in draw order. A group that failed is left out; if nothing is to be learned from, nothing is trained. Pure but for its
 * artifacts: safe to run twice.
 */
export const assignCredit = defineStage({
  name: "assign_credit",
  version: 1,
  input: Input,
  output: Credit,
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
    const metrics = { ...(input.metrics ?? roundMetrics(alive)), ...assigned?.metrics };
    ctx.emit({ metrics, version: sampledBy(ordered) });
    const waits = input.value_warmup !== undefined && input.value_warmup.trained < input.value_warmup.rounds;
    const policyLearns = !waits && (assigned?.advantage.flat() ?? []).some((value) => value !== 0);
    const valueLearns = input.values !== undefined && alive.some(({ lengths }) => lengths.some((length) => length > 0));
    const used = policyLearns || valueLearns;
    if (used) ctx.tally({ trained: alive.length });
    else if (alive.length > 0) ctx.tally({ "filtered.zero_advantage": alive.length });
    const batch = used
      ? await ctx.artifacts.putJson(await batchOf(input, { alive, tokens, assigned: assigned! }, ctx))
      : null;
    return {
      batch: policyLearns ? batch : null,
      ...(input.values && { value_batch: valueLearns ? batch : null }),
      ...(input.coef && { coef: { ...coefOf(input), ...assigned?.coef } }),
      trained: used ? alive.length : 0,
      filtered: used ? 0 : alive.length,
      failed: broken.length,
    };
  },
});

/** Of this round. What a file has that the round before did not know, as after a fork to it, begins as the file says. */
function coefOf({ coef, opened }: Input): Record<string, number> {
  return { ...opened?.coef, ...coef };
}

/** What the algorithm makes of a round of at least one group. */
async function assign(
  input: Input,
  { alive, tokens }: Pick<Round, "alive" | "tokens">,
  ctx: Context,
): Promise<Assigned> {
  const round: CreditRound = creditRound(alive);
  const token_reward = await tokens.rewards();
  const given = await tokens.given({ ...input.tokens, ...input.values }, round);
  const { opened } = input;
  const whole = { ...round, ...(token_reward && { token_reward }), ...given, coef: coefOf(input) };
  if (opened === undefined) return creditOf(input.algorithm, whole);
  return await ctx.resource(Trainer).credit(
    { algorithm: opened.source, round: await ctx.artifacts.putJson(whole) },
    ctx,
  );
}

type Round = { alive: ScoredGroup[]; tokens: RoundTokens; assigned: Assigned };

async function batchOf(input: Input, { alive, tokens, assigned }: Round, ctx: Context): Promise<Batch> {
  const columns: Record<string, Column> = { advantage: await tokens.toColumn(assigned.advantage) };
  if (assigned.returns) columns.returns = await tokens.toColumn(assigned.returns);
  for (const [name, artifact] of Object.entries(input.tokens)) columns[name] = { kind: "token", artifact };
  if (input.values?.values) columns.old_values = { kind: "token", artifact: input.values.values };
  const { updates_per_batch: updates, epochs_per_batch: epochs = 1 } = input;
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

/** Policy versions between sampling and training, [N]; none if all are 0. */
function stalenessOf(groups: ScoredGroup[], policy_number: number | undefined): number[] {
  const behind = ({ sampled_at }: ScoredGroup) =>
    policy_number === undefined || sampled_at === undefined ? 0 : policy_number - sampled_at;
  const all = groups.flatMap((group) => group.rewards.map(() => behind(group)));
  return all.some((versions) => versions > 0) ? all : [];
}

/** @throws {BadDataError} If a larger part of the groups failed than may. */
export function checkFailed(groups: ScoredGroup[], failed_fraction_max: number): void {
  const broken = groups.filter((group) => group.failed !== null);
  if (broken.length <= failed_fraction_max * groups.length) return;
  const first = broken[0]!;
  throw new BadDataError(
    `Cannot train this round as ${broken.length} of ${groups.length} groups failed, more than rollouts.failed_fraction_max allows: ` +
      `draw ${first.group.draw} failed with ${first.failed}: ${first.detail ?? "no detail"}`,
    { draws: broken.map(({ group }) => group.draw) },
  );
}
