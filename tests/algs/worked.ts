/**
 * An algorithm on a few tokens, for numbers that a person works out from the paper's formula.
 * Probabilities are given as such, and their logarithms taken here: a ratio is then a quotient.
 */
import { ok } from "node:assert/strict";
import {
  type AnyAlgorithm,
  type Assigned,
  evaluate,
  type EvaluatedSequence,
  traceAlgorithm,
} from "../../algs/mod.ts";
import type { FullRound } from "./properties/asked_of.ts";

/** One sequence. Probabilities of its tokens, 1 if they are left out; other inputs as they are. */
type Row = {
  group?: number;
  mask?: number[];
  pi?: number[];
  old?: number[];
  behaviour?: number[];
  ref?: number[];
  inputs?: EvaluatedSequence["inputs"];
};

/** A round's rewards and lengths; it stopped by itself and has no values unless they are given. */
type WorkedRound = Partial<FullRound> & Pick<FullRound, "reward" | "length">;

type Worked = {
  loss(rows: readonly Row[], coef?: Record<string, number>): Evaluated;
  value_loss(rows: readonly Row[]): Evaluated;
  credit(round: WorkedRound): Assigned;
};
type Evaluated = { loss: number; metrics: Record<string, number> };

export function worked(algorithm: AnyAlgorithm, settings: Record<string, unknown> = {}): Worked {
  const { loss, value_loss } = traceAlgorithm(algorithm, settings);
  const config = algorithm.config.parse(settings);
  return {
    loss: (rows, coef = {}) => evaluate(loss, { sequences: rows.map(sequenceOf), coef }),
    value_loss: (rows) => evaluate(value_loss!, { sequences: rows.map(sequenceOf) }),
    credit: (round) => algorithm.credit!.assign(fullRound(round) as never, config as never),
  };
}

function sequenceOf({ group = 0, mask, pi = [], old, behaviour, ref, inputs = {} }: Row) {
  const logs = (probabilities: number[] | undefined) =>
    (probabilities ?? pi.map(() => 1)).map(Math.log);
  const logps = {
    logp: logs(pi),
    old_logp: logs(old),
    behaviour_logp: logs(behaviour),
    ref_logp: logs(ref),
  };
  return {
    group,
    mask: mask ?? (pi.length > 0 ? pi.map(() => 1) : [1]),
    inputs: { ...logps, ...inputs },
  };
}

/**
 * One group and one reward unless said otherwise; the reference and the sampler agree with the
 * policy.
 */
function fullRound({ length, reward, ...columns }: WorkedRound): FullRound {
  const zeros = length.map((tokens) => new Array<number>(tokens).fill(0));
  return {
    group: length.map(() => 0),
    stop: length.map(() => "stop"),
    old_logp: zeros,
    ref_logp: zeros,
    values: zeros,
    bootstrap: length.map(() => 0),
    coef: {},
    parts: [{ name: "only", weight: 1, paid: reward }],
    ...columns,
    length,
    reward,
  };
}

/** Numbers that a person worked out agree with computed ones, whatever their rows. */
export function near(
  actual: number | readonly number[] | readonly number[][],
  expected: number | readonly number[] | readonly number[][],
  tolerance = 1e-12,
): void {
  const [a, b] = [[actual].flat(2), [expected].flat(2)];
  const same = a.length === b.length && a.every((x, i) => Math.abs(x - b[i]!) <= tolerance);
  ok(same, `${JSON.stringify(actual)} is not ${JSON.stringify(expected)}`);
}

/** Where settings are refused, and why: "setting: message". */
export function refusals({ config }: AnyAlgorithm, settings: Record<string, unknown>): string[] {
  const { error } = config.safeParse(settings);
  return error?.issues.map(({ path, message }) => `${path.join(".")}: ${message}`) ?? [];
}

/** The defaults of some settings. */
export function defaults({ config }: AnyAlgorithm, ...names: string[]): Record<string, unknown> {
  const all = config.parse({}) as Record<string, unknown>;
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}
