import { basename } from "node:path";
import { z } from "zod";
import { type AlgorithmDescription, type RatioBounds, type ScoredColumn } from "../data/mod.ts";
import type {
  Algorithm,
  AnyAlgorithm,
  Assigned,
  CreditNeeds,
  CreditRound,
  Unpaired,
} from "./algorithm.ts";
import { traceAlgorithm, type TracedAlgorithm } from "./algorithm.ts";
import { inPython, PythonAlgorithm, unopened } from "./python.ts";
import { profilesOf } from "./profiles/profiles.ts";
import type { Refill } from "./terms/refill.ts";
import {
  ALGORITHMS,
  ONLINE_ALGORITHMS,
  PREFERENCE_ALGORITHMS,
  SUPERVISED_ALGORITHMS,
} from "./table.ts";

type Option<A> = A extends Algorithm<infer Name, infer Shape, infer _Needs, infer _Coef>
  ? z.ZodObject<
    { name: z.ZodLiteral<Name>; profile: z.ZodOptional<z.ZodEnum> } & Shape,
    z.core.$strict
  >
  : never;
type Choice<Table> = z.ZodDiscriminatedUnion<
  readonly (Option<Table[keyof Table]> | typeof PythonAlgorithm)[],
  "name"
>;

/**
 * The schema of one choice: an algorithm of a table by name, with its settings next to it, or one
 * in a Python file.
 */
function choiceOf<Table extends Record<string, AnyAlgorithm>>(
  table: Table,
): Choice<Table> {
  const options = Object.values(table).map(({ name, about, config }) =>
    z.strictObject({
      name: about === undefined ? z.literal(name) : z.literal(name).describe(about),
      ...profileField(name),
      ...config.shape,
    }).check(...(config.def.checks ?? []) as [])
  );
  const all: z.core.$ZodTypeDiscriminable[] = [...options, PythonAlgorithm];
  return z.discriminatedUnion("name", all as [z.core.$ZodTypeDiscriminable]) as unknown as Choice<
    Table
  >;
}

function profileField(algorithm: string): { profile?: z.ZodType } {
  const names = profilesOf(algorithm);
  if (names.length === 0) return {};
  return {
    profile: z.enum(names).optional().describe(
      "The framework whose defaults apply to omitted settings.",
    ),
  };
}

/** The values of `algorithm:` in the online flow. */
export const OnlineAlgorithm = choiceOf(ONLINE_ALGORITHMS);
export type OnlineAlgorithm = z.infer<typeof OnlineAlgorithm>;

/** The values of `algorithm:` in the supervised flow. */
export const SupervisedAlgorithm = choiceOf(SUPERVISED_ALGORITHMS);
export type SupervisedAlgorithm = z.infer<typeof SupervisedAlgorithm>;

/** The values of `algorithm:` in the preference flow. */
export const PreferenceAlgorithm = choiceOf(PREFERENCE_ALGORITHMS);
export type PreferenceAlgorithm = z.infer<typeof PreferenceAlgorithm>;

const /** @internal */ algorithmChoiceSchema = choiceOf(ALGORITHMS);
/** Any algorithm with its settings. */
export type AlgorithmChoice = z.infer<typeof algorithmChoiceSchema>;
/** Schema of {@linkcode AlgorithmChoice}. */
export const AlgorithmChoice: typeof algorithmChoiceSchema = algorithmChoiceSchema;

function opened(
  choice: AlgorithmChoice,
): { algorithm: AnyAlgorithm; config: Record<string, unknown> } {
  const { name, profile: _, ...settings } = choice as AlgorithmChoice & { profile?: string };
  const algorithm: AnyAlgorithm = inPython(choice)
    ? unopened(choice)
    : ALGORITHMS[name as keyof typeof ALGORITHMS];
  return { algorithm, config: algorithm.config.parse(settings) };
}

/** What people call it: its name, or its file's. */
export function titleOf(choice: AlgorithmChoice): string {
  return inPython(choice) ? basename(choice.source) : choice.name;
}

/** Whether the policy's loss leaves out completions that the token limit cut. */
export function masksTruncated(choice: AlgorithmChoice): boolean {
  return "mask_truncated" in choice && choice.mask_truncated;
}

/**
 * Whether credit reads what each token earns. A file in Python may; other algorithms read the sum,
 * exactly.
 */
export function readsTokenRewards(choice: AlgorithmChoice): boolean {
  return inPython(choice) || opened(choice).algorithm.per_token === true;
}

/** For each sequence, whether the policy's loss leaves it out. [N] -> [N] */
export function maskedOf(choice: AlgorithmChoice, { stop }: Pick<CreditRound, "stop">): boolean[] {
  const masks = masksTruncated(choice);
  return stop.map((reason) => masks && reason === "length");
}

/** The smallest group that the chosen algorithm can learn from. */
export function groupMin(choice: AlgorithmChoice): number {
  return opened(choice).algorithm.group_min ?? 1;
}

/** Whether groups without signal are replaced, and how often; null: they are not. */
export function refillOf(choice: AlgorithmChoice): Refill | null {
  const { algorithm, config } = opened(choice);
  return algorithm.refill?.(config as never) ?? null;
}

/** `score`: the trained model is a reward model; null: a language model. */
export function headOf(choice: AlgorithmChoice): "score" | null {
  return opened(choice).algorithm.head ?? null;
}

/** What it reads if it learns from completions with a label; null: it does not. */
export function unpairedOf(choice: AlgorithmChoice): Unpaired | null {
  const { algorithm, config } = opened(choice);
  return algorithm.unpaired?.(config as never) ?? null;
}

/** Whether its credit reads each reward by itself. */
export function readsParts(choice: AlgorithmChoice): boolean {
  const { algorithm, config } = opened(choice);
  return creditNeeds(algorithm, config).includes("parts");
}

/** Whether it also trains a value model. */
export function hasValueModel(choice: AlgorithmChoice): boolean {
  return opened(choice).algorithm.value_loss !== undefined;
}

/** Whether the model's dropout is on while it trains. */
export function dropoutOf(choice: AlgorithmChoice): boolean {
  return opened(choice).algorithm.dropout ?? false;
}

/**
 * PPO's range, used for metrics if the algorithm has no clip. Schulman et al. 2017,
 * arXiv:1707.06347, table 1.
 */
const PPO_CLIP = { clip_low: 0.2, clip_high: 0.2 };

/**
 * The range outside which a step's tokens are counted: the algorithm's own clip. `settings`: the
 * settings of a Python file, once it is open; its clip is read if it has PPO's names.
 */
export function ratioBounds(
  choice: AlgorithmChoice,
  settings?: Readonly<Record<string, unknown>>,
): RatioBounds {
  const { algorithm, config } = opened(choice);
  const effective = settings ?? config;
  const clips = typeof effective.clip_high === "number" || typeof effective.clip_low === "number";
  const { clip_low, clip_high } = clips ? effective : PPO_CLIP;
  const bound = (value: unknown) => typeof value === "number" ? value : null;
  return { low: bound(clip_low), high: bound(clip_high), ratio: algorithm.ratio ?? "token" };
}

/** The losses of the chosen algorithm, traced and checked. */
export function expressionsOf(choice: AlgorithmChoice): TracedAlgorithm {
  const { algorithm, config } = opened(choice);
  return traceAlgorithm(algorithm, config);
}

/**
 * The coefficients that change during this run, each with its value in the first round.
 * Coefficients that nothing reads are left out.
 */
export function firstCoef(choice: AlgorithmChoice): Record<string, number> {
  const { algorithm, config } = opened(choice);
  const { loss, value_loss } = traceAlgorithm(algorithm, config);
  const read = new Set([...loss.inputs, ...(value_loss?.inputs ?? [])]);
  const all = creditNeeds(algorithm, config).includes("coef");
  const used = Object.entries(algorithm.coef ?? {}).filter(([name]) =>
    all || read.has(`coef.${name}`)
  );
  return Object.fromEntries(used.map(([name, first]) => [name, first(config as never)]));
}

/**
 * The columns to score before credit and loss. `old_logp` is not needed if a batch has one
 * optimizer step and credit does not read it: the trainer then uses the detached `logp` of that
 * step. A value loss reads the `values` before the update as `old_values`.
 */
export function needsOf(choice: AlgorithmChoice, updatesPerBatch: number): ScoredColumn[] {
  const { algorithm, config } = opened(choice);
  const needs = creditNeeds(algorithm, config);
  const { loss, value_loss } = traceAlgorithm(algorithm, config);
  return columnsFor(
    { inputs: loss.inputs, value_inputs: value_loss?.inputs ?? [], needs },
    updatesPerBatch,
  );
}

/** `needsOf` an algorithm in Python. */
export function needsOfDescribed(
  { inputs, value_inputs, needs }: AlgorithmDescription,
  updatesPerBatch: number,
): ScoredColumn[] {
  return columnsFor(
    { inputs, value_inputs: value_inputs ?? [], needs: needs ?? [] },
    updatesPerBatch,
  );
}

type Reads = {
  inputs: readonly string[];
  value_inputs: readonly string[];
  needs: readonly string[];
};

function columnsFor(
  { inputs, value_inputs, needs }: Reads,
  updatesPerBatch: number,
): ScoredColumn[] {
  const read = {
    old_logp: inputs.includes("old_logp") && updatesPerBatch > 1,
    ref_logp: inputs.includes("ref_logp"),
    values: value_inputs.includes("old_values"),
    bootstrap: false,
  };
  return (["old_logp", "ref_logp", "values", "bootstrap"] as const).filter((name) =>
    read[name] || needs.includes(name)
  );
}

function creditNeeds({ credit }: AnyAlgorithm, config: unknown): readonly (keyof CreditNeeds)[] {
  return typeof credit?.needs === "function" ? credit.needs(config as never) : credit?.needs ?? [];
}

/** Credit of a whole round: advantages, and anything else that the algorithm assigns. */
export function creditOf(
  choice: AlgorithmChoice,
  round: CreditRound & Partial<CreditNeeds>,
): Assigned {
  const { algorithm, config } = opened(choice);
  if (algorithm.credit === undefined) {
    throw new RangeError(
      `Cannot assign credit with '${algorithm.name}' because it learns from rows, not from rewards`,
    );
  }
  const lacking = creditNeeds(algorithm, config).find((name) => round[name] === undefined);
  if (lacking !== undefined) {
    const has = Object.keys(round).join(", ");
    throw new RangeError(
      `Cannot assign credit with '${algorithm.name}' because it needs ${lacking}: the round ` +
        `has ${has}`,
    );
  }
  const assigned = algorithm.credit.assign(round as never, config as never);
  for (
    const [name, values] of Object.entries({
      advantage: assigned.advantage,
      returns: assigned.returns,
    })
  ) {
    if (values !== undefined) checkAssigned(algorithm.name, name, { values, round });
  }
  return assigned;
}

/**
 * Whether a group has a signal: if it were a round by itself, a trained sequence would have a
 * nonzero advantage. If credit is in Python, or needs values that are computed only once the round
 * is full, the group has a signal if its rewards differ.
 */
export function hasSignal(choice: AlgorithmChoice, group: CreditRound): boolean {
  const { algorithm, config } = opened(choice);
  const masked = maskedOf(choice, group);
  if (inPython(choice) || creditNeeds(algorithm, config).length > 0) {
    return masked.includes(false) && group.reward.some((reward) => reward !== group.reward[0]);
  }
  return teaches(creditOf(choice, group).advantage, masked);
}

/** Whether a sequence that is not masked has a nonzero advantage. [N] or [N][T], [N] */
export function teaches(advantage: number[] | number[][], masked: readonly boolean[]): boolean {
  return advantage.some((value, i) => !masked[i] && [value].flat().some((one) => one !== 0));
}

/** One number for each sequence, or one for each of its sampled tokens. */
function checkAssigned(
  algorithm: string,
  name: string,
  { values, round }: { values: number[] | number[][]; round: CreditRound },
): void {
  if (values.length !== round.reward.length) {
    throw new RangeError(
      `Cannot train on ${values.length} ${name} values because the round has ` +
        `${round.reward.length} sequences: ` +
        `'${algorithm}' must assign one to each`,
    );
  }
  for (const [i, value] of values.entries()) {
    const numbers = Array.isArray(value) ? value : [value];
    if (Array.isArray(value) && value.length !== round.length[i]) {
      throw new RangeError(
        `Cannot train on ${value.length} ${name} values of sequence ${i} because it has ${
          round.length[i]
        } sampled tokens: ` +
          `'${algorithm}' must assign one to each`,
      );
    }
    const wrong = numbers.find((number) => !Number.isFinite(number));
    if (wrong !== undefined) {
      throw new RangeError(
        `Cannot train on ${name} of sequence ${i} as '${algorithm}' assigned ${wrong} to it`,
      );
    }
  }
}
