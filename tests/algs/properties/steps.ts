import type { EvaluatedSequence, EvaluatedStep } from "../../../algs/mod.ts";
import type { Cut } from "./asked_of.ts";

/** Uniform numbers in [0, 1) from a seed (mulberry32). */
export function uniform(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** By the seed modulo 3: none undesirable, none but undesirable, every kind. 0: mismatched. */
const LABELS = [[1, 0, 1, 0, 1, 0], [-1, -1, -1, -1, -1, -1], [1, 0, -1, 0, -1, 1]];
const ADVANTAGES = [1.3, -0.7, 0, 0.4, -1.6, 0.9, -0.2, 2.1];

/**
 * A step with every input: groups of unequal size (or pairs), sequences of unequal length, masks
 * with holes, advantages of both signs and 0. What is masked is NaN in every input.
 */
export function randomStep(
  seed: number,
  { pairs, empty = false, coef = ["kl"] }: {
    pairs: boolean;
    empty?: boolean;
    coef?: readonly string[];
  },
): EvaluatedStep {
  const next = uniform(seed);
  const groups = pairs ? [0, 0, 1, 1, 2, 2] : [0, 0, 0, 1, 2, 2];
  const sequences = groups.map((group, s) => {
    const one = randomSequence(next, {
      group,
      advantage: ADVANTAGES[(s + seed) % ADVANTAGES.length]!,
    });
    const labelled = { ...one, inputs: { ...one.inputs, label: LABELS[seed % 3]![s]! } };
    return empty && s === 4 ? { ...labelled, mask: one.mask.map(() => 0) } : labelled;
  });
  return {
    sequences: sequences.map((one) => withMasked(one, NaN)),
    coef: Object.fromEntries(coef.map((name) => [name, 0.05])),
  };
}

function randomSequence(
  next: () => number,
  { group, advantage }: { group: number; advantage: number },
): EvaluatedSequence {
  const size = 3 + Math.floor(next() * 4);
  const mask = Array.from(
    { length: size },
    (_, t) => (t === 0 || (t !== size - 1 && next() < 0.25) ? 0 : 1),
  );
  const column = (make: () => number) => Array.from({ length: size }, make);
  const logp = column(() => -0.2 - 2 * next());
  const near = (spread: number) => logp.map((value) => value + spread * (2 * next() - 1));
  return {
    group,
    mask,
    inputs: {
      logp,
      old_logp: near(0.5),
      behaviour_logp: near(0.7),
      ref_logp: near(0.5),
      entropy: column(() => 0.1 + 2 * next()),
      advantage: mask.map(() => advantage),
      values: column(() => 2 * next() - 1),
      old_values: column(() => 2 * next() - 1),
      returns: column(() => 2 * next() - 1),
      score: 2 * next() - 1,
      staleness: Math.floor(3 * next()),
      margin: next() / 2,
    },
  };
}

/** The sequence with another value at all masked positions. */
export function withMasked(one: EvaluatedSequence, value: number): EvaluatedSequence {
  const inputs = Object.entries(one.inputs).map(([name, column]) => [
    name,
    typeof column === "number" ? column : column.map((x, t) => (one.mask[t] ? x : value)),
  ]);
  return { ...one, inputs: Object.fromEntries(inputs) };
}

/** The step with one number of one token input changed. */
export function withToken(
  step: EvaluatedStep,
  place: { name: string; s: number; t: number },
  value: number,
): EvaluatedStep {
  const sequences = step.sequences.map((one, s) => {
    if (s !== place.s) return one;
    const column = one.inputs[place.name]!;
    const changed = typeof column === "number"
      ? value
      : column.map((x, t) => (t === place.t ? value : x));
    return { ...one, inputs: { ...one.inputs, [place.name]: changed } };
  });
  return { ...step, sequences };
}

/**
 * The step with the policy that sampled: every ratio is 1, and an advantage is one number for its
 * sequence.
 */
export function onPolicy(step: EvaluatedStep): EvaluatedStep {
  const sequences = step.sequences.map((one) => {
    const { logp, advantage: all } = one.inputs;
    const advantage = (all as number[])[Math.max(one.mask.indexOf(1), 0)]!;
    return {
      ...one,
      inputs: { ...one.inputs, old_logp: logp!, behaviour_logp: logp!, ref_logp: logp!, advantage },
    };
  });
  return { ...step, sequences };
}

const LOG_PROBABILITIES = ["logp", "old_logp", "behaviour_logp", "ref_logp"];

/**
 * The step with every log-probability 0 in each sequence of even place: the floating-point numbers
 * around a difference then lie so close that a move of one input reaches a corner exactly.
 */
export function withFineSequences(step: EvaluatedStep): EvaluatedStep {
  const sequences = step.sequences.map((one, s) => {
    if (s % 2 > 0) return one;
    const zeros = LOG_PROBABILITIES.map((name) => [name, one.mask.map((bit) => (bit ? 0 : NaN))]);
    return { ...one, inputs: { ...one.inputs, ...Object.fromEntries(zeros) } };
  });
  return { ...step, sequences };
}

/**
 * Everything at once; one row or pair each; two uneven ranks, one with a filler; three ranks in
 * another order.
 */
export function cutsOf(size: number, { pairs }: { pairs: boolean }): Cut[] {
  const unit = pairs ? 2 : 1;
  const filler = Array<number>(unit).fill(-1);
  const units = Array.from(
    { length: size / unit },
    (_, u) => Array.from({ length: unit }, (_, k) => u * unit + k),
  );
  const join = (...picked: number[][]) => picked.flat();
  const half = Math.floor(units.length / 2);
  return [
    [[join(...units)]],
    [units],
    [[join(...units.slice(0, half + 1)), units[half + 1] ?? filler], [
      join(...units.slice(half + 2), filler),
      filler,
    ]],
    [[units.at(-1)!], [join(...units.slice(1, -1).toReversed())], [join(units[0]!, filler)]],
  ];
}
