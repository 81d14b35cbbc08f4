import { z } from "zod";
import { type Algorithm, type AnyAlgorithm, type CreditNeeds, type CreditRound } from "./algorithm.ts";
import { traceAlgorithm, type TracedAlgorithm } from "./algorithm.ts";
import { ALGORITHMS, ONLINE_ALGORITHMS, SUPERVISED_ALGORITHMS } from "./table.ts";

type Option<A> = A extends Algorithm<infer Name, infer Shape, infer _Needs, infer _Coef>
  ? z.ZodObject<{ name: z.ZodLiteral<Name> } & Shape, z.core.$strict>
  : never;
type Choice<Table> = z.ZodDiscriminatedUnion<readonly Option<Table[keyof Table]>[], "name">;

/** The schema of one choice from a table: the algorithm's name with its own settings beside it. */
function choiceOf<Table extends Record<string, AnyAlgorithm>>(table: Table): Choice<Table> {
  const options = Object.values(table).map(({ name, about, config }) =>
    z.strictObject({ name: about === undefined ? z.literal(name) : z.literal(name).describe(about), ...config.shape })
  );
  return z.discriminatedUnion("name", options as [(typeof options)[number]]) as unknown as Choice<Table>;
}

/** What `algorithm:` may be in the online flow. */
export const OnlineAlgorithm = choiceOf(ONLINE_ALGORITHMS);
export type OnlineAlgorithm = z.infer<typeof OnlineAlgorithm>;

/** What `algorithm:` may be in the supervised flow. */
export const SupervisedAlgorithm = choiceOf(SUPERVISED_ALGORITHMS);
export type SupervisedAlgorithm = z.infer<typeof SupervisedAlgorithm>;

/** Any algorithm with its settings. */
export const AlgorithmChoice = choiceOf(ALGORITHMS);
export type AlgorithmChoice = z.infer<typeof AlgorithmChoice>;

function opened(choice: AlgorithmChoice): { algorithm: AnyAlgorithm; config: Record<string, unknown> } {
  const { name, ...settings } = choice;
  const algorithm: AnyAlgorithm = ALGORITHMS[name];
  return { algorithm, config: algorithm.config.parse(settings) };
}

/** The smallest group that the chosen algorithm can learn from. */
export function groupMin(choice: AlgorithmChoice): number {
  return opened(choice).algorithm.group_min ?? 1;
}

/** The losses of the chosen algorithm, traced and checked. */
export function expressionsOf(choice: AlgorithmChoice): TracedAlgorithm {
  const { algorithm, config } = opened(choice);
  return traceAlgorithm(algorithm, config);
}

/** Columns that a model must compute before training. */
export type ScoredColumn = "old_logp" | "ref_logp";

/**
 * What must be scored before credit and loss. `old_logp` is not, where one optimizer step serves the batch and credit
 * does not ask: the trainer then reads it as the detached `logp` of that step.
 */
export function needsOf(choice: AlgorithmChoice, updatesPerBatch: number): ScoredColumn[] {
  const needs = opened(choice).algorithm.credit?.needs ?? [];
  const { loss } = expressionsOf(choice);
  const read = (name: ScoredColumn) => loss.inputs.includes(name) && (name !== "old_logp" || updatesPerBatch > 1);
  return (["old_logp", "ref_logp"] as const).filter((name) => read(name) || needs.includes(name));
}

/** Credit of a whole round: one advantage per sequence [N], or one per token [N][T]. */
export function assignAdvantages(
  choice: AlgorithmChoice,
  round: CreditRound & Partial<CreditNeeds>,
): number[] | number[][] {
  const { algorithm, config } = opened(choice);
  if (algorithm.credit === undefined) {
    throw new RangeError(
      `Cannot assign credit with '${algorithm.name}' as it learns from completions, not from rewards`,
    );
  }
  const lacking = algorithm.credit.needs.find((name) => round[name] === undefined);
  if (lacking !== undefined) {
    const has = Object.keys(round).join(", ");
    throw new RangeError(`Cannot assign credit with '${algorithm.name}' as it needs ${lacking}: the round has ${has}`);
  }
  const { advantage } = algorithm.credit.assign(round as never, config as never);
  if (advantage.length !== round.reward.length) {
    throw new RangeError(
      `Cannot train on ${advantage.length} advantages as the round has ${round.reward.length} sequences: ` +
        `'${algorithm.name}' must assign one to each`,
    );
  }
  return advantage;
}
