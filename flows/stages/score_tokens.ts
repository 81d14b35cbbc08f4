import { z } from "zod";
import { ArtifactRef, type Batch, Policy, ScoredColumn } from "../../data/mod.ts";
import { type ArtifactStore, defineStage, type Stage } from "../../engine/mod.ts";
import { Critic, Trainer } from "../resources.ts";
import { RoundTokens } from "./credit_round.ts";
import { referencePath } from "./refresh_reference.ts";
import { ScoredGroup } from "./score_group.ts";

/** Which model computes a column: the policy and the reference, or the value model. */
const isLogp = (column: ScoredColumn) => column === "old_logp" || column === "ref_logp";

const Columns = z.record(z.string(), ArtifactRef).describe("Column name to its artifact.");
/** @internal */
type Columns = z.output<typeof Columns>;

const TokensInput = z.strictObject({
  scored: z.array(ScoredGroup),
  policy: Policy,
  reference: Policy,
  reference_offload: z.boolean().optional(),
  columns: z.array(ScoredColumn),
  stale_columns: z.array(ScoredColumn).optional().describe(
    "Used instead in a round with a group that an older version sampled; absent: none.",
  ),
  stale_old_logp: z.literal("behaviour").optional().describe(
    "`old_logp` of groups that an older version sampled is the sampler's own; absent: the " +
      "policy's, as for all others.",
  ),
  temperature: z.number().positive(),
  micro_batch_tokens_max: z.int().positive(),
});
/** @internal */
type TokensInput = z.input<typeof TokensInput>;

/**
 * Only the log-probabilities that credit or loss read: without columns it does nothing. Failed
 * groups are left out, as in credit. Pure except for its artifacts: safe to run twice.
 */
export const scoreTokens: Stage<TokensInput, Columns> = defineStage({
  name: "score_tokens",
  version: 1,
  input: TokensInput,
  output: Columns,
  phase: "training",
  eager: true,
  async run({ scored, policy, reference, temperature, micro_batch_tokens_max, ...input }, ctx) {
    const alive = inDrawOrder(scored);
    const isStale = ({ sampled_at }: ScoredGroup) => sampled_at < policy.number;
    const stale = alive.some(isStale);
    const columns = (stale ? input.stale_columns ?? input.columns : input.columns).filter(isLogp);
    if (columns.length === 0 || alive.length === 0) return {};
    const batch = await batchOf(alive, { temperature, artifacts: ctx.artifacts });
    const reference_path = columns.includes("ref_logp")
      ? await referencePath(reference, ctx)
      : reference.model_path;
    const { reference_offload = false } = input;
    const work = {
      policy,
      batch,
      columns,
      reference_path,
      reference_offload,
      micro_batch_tokens_max,
    };
    const found = await ctx.resource(Trainer).score(work, ctx);
    if (!stale || input.stale_old_logp === undefined || found.old_logp === undefined) return found;
    const tokens = new RoundTokens(alive, ctx.artifacts);
    return { ...found, old_logp: await tokens.asSampled(found.old_logp, isStale) };
  },
});

const ValuesInput = z.strictObject({
  scored: z.array(ScoredGroup),
  critic: Policy,
  columns: z.array(ScoredColumn),
  micro_batch_tokens_max: z.int().positive(),
});
/** @internal */
type ValuesInput = z.input<typeof ValuesInput>;

/**
 * The value model's values of a round's tokens, before it learns from them. Pure except for its
 * artifacts: safe to run twice.
 */
export const scoreValues: Stage<ValuesInput, Columns> = defineStage({
  name: "score_values",
  version: 1,
  input: ValuesInput,
  output: Columns,
  phase: "training",
  eager: true,
  async run({ scored, critic, micro_batch_tokens_max, ...input }, ctx) {
    const alive = inDrawOrder(scored);
    const columns = input.columns.filter((column) => !isLogp(column));
    if (columns.length === 0 || alive.length === 0) return {};
    const batch = await batchOf(alive, { temperature: 1, artifacts: ctx.artifacts });
    const reference = { reference_path: null, reference_offload: false };
    const work = { policy: critic, batch, columns, ...reference, micro_batch_tokens_max };
    return await ctx.resource(Critic).score(work, ctx);
  },
});

/** The groups that did not fail, as credit orders them. */
function inDrawOrder(scored: ScoredGroup[]): ScoredGroup[] {
  return scored.filter((group) => group.failed === null).toSorted((a, b) =>
    a.group.draw - b.group.draw
  );
}

type ScoringContext = { temperature: number; artifacts: ArtifactStore };

/** The groups with nothing to train on. */
async function batchOf(
  alive: ScoredGroup[],
  { temperature, artifacts }: ScoringContext,
): Promise<ArtifactRef> {
  const groups = alive.map(({ group }) => group);
  const parts = {
    groups,
    columns: {},
    staleness: [],
    temperature,
    coef: {},
    updates: [groups.map((_, i) => i)],
  };
  return await artifacts.putJson({ kind: "trajectories", ...parts } satisfies Batch);
}
