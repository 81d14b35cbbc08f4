/** Properties of losses that push log-probabilities by advantages. */
import { deepStrictEqual, ok } from "node:assert/strict";
import { ZodError } from "zod";
import type { EvaluatedSequence, EvaluatedStep } from "../../../algs/mod.ts";
import { coefOf, differentiateWhole, firstCut, once } from "./asked.ts";
import { onPolicy, randomStep } from "./steps.ts";
import type { AlgorithmUnderTest, LossUnderTest, Variant } from "./asked_of.ts";

/** Registers them for every variant that is one. */
export function testPolicyGradients(algorithm: AlgorithmUnderTest): void {
  const isOne = ({ reads }: LossUnderTest) => reads.includes("advantage") && reads.includes("logp");
  for (const loss of algorithm.variants.flatMap(({ losses }) => losses).filter(isOne)) {
    testOnPolicy(loss);
    testMasked(loss);
    testEffectiveSamples(loss);
  }
  const [plain] = algorithm.variants;
  if (plain && "importance" in plain.settings) testImportance(algorithm);
}

/**
 * On the first step every ratio is 1: whatever the surrogate, what is left is REINFORCE under some
 * aggregation.
 */
function testOnPolicy(loss: LossUnderTest): void {
  const steps = [5, 6].map((seed) =>
    onPolicy(randomStep(seed, { pairs: loss.pairs, coef: coefOf(loss) }))
  );
  const outcomes = once(() => differentiateWhole(loss, steps));

  Deno.test(`loss ${loss.title}: on its own samples, its gradient is REINFORCE's`, async () => {
    const gradients = (await outcomes()).map(({ gradients }) => gradients.logp!.flat());
    const misses = Object.entries(SHARES).map(([name, share]) => {
      const expected = steps.map((step) => reinforce(step, share).flat());
      const scale = share === SHARES.constant ? fitted(gradients[0]!, expected[0]!) : 1;
      const size = Math.max(...gradients.flat().map(Math.abs));
      const miss = gradients.flat().map((g, i) => Math.abs(g - scale * expected.flat()[i]!));
      return { name, relative: Math.max(...miss) / size };
    });
    ok(
      misses.some(({ relative }) => relative <= 1e-13),
      `by aggregation: ${JSON.stringify(misses)}`,
    );
  });

  if (!loss.reads.includes("old_logp")) return;
  Deno.test(`loss ${loss.title}: old_logp may be the detached logp or a column of it`, async () => {
    const bare = steps.map((step) => ({
      ...step,
      sequences: step.sequences.map((one) => withoutOld(one)),
    }));
    const cases = bare.map((step) => ({ step, cuts: [firstCut(step)], old_is_current: true }));
    deepStrictEqual(
      (await loss.differentiate(cases)).map(([outcome]) => outcome),
      await outcomes(),
    );
  });
}

/**
 * What `mask_truncated` rests on: a masked sequence is in no sum and no denominator, as if it were
 * not there.
 */
function testMasked(loss: LossUnderTest): void {
  if (loss.pairs) return;
  Deno.test(`loss ${loss.title}: sequences that are masked whole change nothing`, async () => {
    for (const gone of [[1], [3], [0, 4, 5]]) { // Of a group, a whole group, and of two.
      const step = randomStep(7, { pairs: false, coef: coefOf(loss) });
      const masked = step.sequences.map((one, s) =>
        gone.includes(s) ? { ...one, mask: one.mask.map(() => 0) } : one
      );
      const remaining = step.sequences.filter((_, s) => !gone.includes(s));
      const [there, alone] = await differentiateWhole(loss, [{ ...step, sequences: masked }, {
        ...step,
        sequences: remaining,
      }]);
      near(there!.loss, alone!.loss, 1e-14);
      deepStrictEqual(Object.keys(there!.metrics), Object.keys(alone!.metrics));
      for (const [name, value] of Object.entries(alone!.metrics)) {
        near(there!.metrics[name]!, value, 1e-14);
      }
      for (const [name, rows] of Object.entries(alone!.gradients)) {
        const kept = there!.gradients[name]!.filter((_, s) => !gone.includes(s));
        kept.flat().forEach((slope, i) => near(slope, rows.flat()[i]!, 1e-14));
        const lost = there!.gradients[name]!.filter((_, s) => gone.includes(s)).flat();
        ok(lost.every((slope) => slope === 0), `${name}: ${lost}`);
      }
    }
  });
}

const withoutOld = (one: EvaluatedSequence) => ({
  ...one,
  inputs: { ...one.inputs, old_logp: NaN },
});

/** The factor between two gradients, by their largest number. */
function fitted(gradient: number[], expected: number[]): number {
  const i = expected.indexOf(
    expected.reduce((most, x) => (Math.abs(x) > Math.abs(most) ? x : most), 0),
  );
  return gradient[i]! / expected[i]!;
}

type Lengths = {
  sequence: number;
  group: number;
  tokens: number;
  sequences: number;
  groups: number;
};

/**
 * What one token weighs in the step, by aggregation. `constant`: the same number in every step,
 * whatever it is.
 */
const SHARES: Record<string, (lengths: Lengths) => number> = {
  token_mean: ({ tokens }) => 1 / tokens,
  sequence_mean: ({ sequence, sequences }) => 1 / (sequence * sequences),
  group_mean: ({ group, groups }) => 1 / (group * groups),
  constant: ({ sequences }) => 1 / sequences,
};

/** -A times the share of the token, per sequence [T]; masked tokens 0. */
function reinforce({ sequences }: EvaluatedStep, share: (lengths: Lengths) => number): number[][] {
  const length = sequences.map(({ mask }) => mask.filter(Boolean).length);
  const tokens = length.reduce((sum, n) => sum + n, 0);
  const full = sequences.filter((_, s) => length[s]! > 0);
  const groups = new Set(full.map(({ group }) => group)).size;
  return sequences.map(({ mask, group, inputs }, s) => {
    const ofGroup = sequences.reduce(
      (sum, other, i) => (other.group === group ? sum + length[i]! : sum),
      0,
    );
    const weight = share({
      sequence: length[s]!,
      group: ofGroup,
      tokens,
      sequences: full.length,
      groups,
    });
    return mask.map((bit) => (bit ? -Number(inputs.advantage) * weight : 0));
  });
}

/**
 * A loss that tells an effective sample size: it is 1 for any constant weight, which then counts as
 * at most 1, and near 1 / n, where one token has all the weight, what pulls the policy back
 * outweighs the advantages.
 */
function testEffectiveSamples(loss: LossUnderTest): void {
  const step = onPolicy(randomStep(5, { pairs: loss.pairs, coef: coefOf(loss) }));
  const sampleSize = once(async () => (await loss.probe([step]))[0]!.metrics["policy/ess"]);

  Deno.test(`loss ${loss.title}: constant weights have an effective sample size of 1`, async () => {
    if (await sampleSize() === undefined) return;
    const shifted = [0, Math.log(0.5), Math.log(3)].map((log_w) => withWeights(step, () => log_w));
    const [one, half, three] = await differentiateWhole(loss, shifted);
    for (const { metrics } of [one!, half!, three!]) near(metrics["policy/ess"]!, 1, 1e-14);
    const gradient = one!.gradients.logp!.flat();
    half!.gradients.logp!.flat().forEach((g, i) => near(g, 0.5 * gradient[i]!, 1e-14));
    three!.gradients.logp!.flat().forEach((g, i) => near(g, gradient[i]!, 1e-14));
  });

  Deno.test(`loss ${loss.title}: with one effective sample the pull outweighs all`, async () => {
    if (await sampleSize() === undefined) return;
    const skewed = withWeights(
      step,
      (s, t) => (s === 0 && step.sequences[0]!.mask.indexOf(1) === t ? 4 : -4),
    );
    const without = {
      ...skewed,
      sequences: skewed.sequences.map((one) => withInput(one, "advantage", 0)),
    };
    const [all, pull] = await differentiateWhole(loss, [skewed, without]);
    const tokens = step.sequences.flatMap(({ mask }) => mask.filter(Boolean)).length;
    near(all!.metrics["policy/ess"]! * tokens, 1, 0.05);
    const norm = (gradient: readonly number[]) => Math.hypot(...gradient);
    const pulled = pull!.gradients.logp!.flat();
    const rest = all!.gradients.logp!.flat().map((g, i) => g - pulled[i]!);
    ok(norm(rest) < 0.05 * norm(pulled), `advantages ${norm(rest)}, pull ${norm(pulled)}`);
  });
}

/**
 * The step with these logarithms of the importance weights: the sampler's log-probabilities move,
 * the policy stays.
 */
function withWeights(step: EvaluatedStep, log_w: (s: number, t: number) => number): EvaluatedStep {
  const sequences = step.sequences.map((one, s) =>
    withInput(
      one,
      "behaviour_logp",
      (one.inputs.logp as number[]).map((logp, t) => logp - log_w(s, t)),
    )
  );
  return { ...step, sequences };
}

const withInput = (
  one: EvaluatedSequence,
  name: string,
  value: number | number[],
): EvaluatedSequence => ({
  ...one,
  inputs: { ...one.inputs, [name]: value },
});

/** Without bounds a correction is the exact weight; for the sampler's own policy it is none. */
function testImportance(algorithm: AlgorithmUnderTest): void {
  const plain = { kl_coef: 0 };
  const modes = once(() =>
    Promise.resolve(MODES.flatMap((importance) => accepted(algorithm, { ...plain, importance })))
  );
  const none = algorithm.vary({ ...plain, importance: "none" });
  const options = { pairs: false, coef: coefOf(none.losses[0]!) };

  Deno.test(`${algorithm.name}: without bounds, importance is the exact weight`, async () => {
    const step = randomStep(5, options);
    const [bare] = await differentiateWhole(none.losses[0]!, [step]);
    for (const { importance, weight } of await modes()) {
      const wide = { ...plain, importance, importance_low: 0 };
      const gradients = await Promise.all([1e12, null].map(async (importance_high) => {
        const { losses } = algorithm.vary({ ...wide, importance_high });
        return (await differentiateWhole(losses[0]!, [step]))[0]!.gradients.logp!;
      }));
      const size = Math.max(...gradients[1]!.flat().map(Math.abs));
      bare!.gradients.logp!.forEach((row, s) =>
        row.forEach((g, t) => {
          const exact = g === 0 ? 0 : g * weight(step.sequences[s]!, t);
          for (const gradient of gradients) near(gradient[s]![t]!, exact, 1e-13 * size);
        })
      );
    }
  });

  Deno.test(`${algorithm.name}: no importance if the sampler had the old policy`, async () => {
    const { sequences, ...step } = randomStep(6, options);
    const same = {
      ...step,
      sequences: sequences.map((one) => withInput(one, "behaviour_logp", old(one))),
    };
    const [bare] = await differentiateWhole(none.losses[0]!, [same]);
    for (const { variant } of await modes()) {
      const [found] = await differentiateWhole(variant.losses[0]!, [same]);
      deepStrictEqual(found!.gradients, bare!.gradients);
    }
  });
}

const old = ({ inputs }: EvaluatedSequence) => inputs.old_logp as number[];

type Mode = {
  importance: string;
  variant: Variant;
  weight: (one: EvaluatedSequence, t: number) => number;
};

const logWeight = (one: EvaluatedSequence, t: number) =>
  old(one)[t]! - (one.inputs.behaviour_logp as number[])[t]!;
const ofToken = (one: EvaluatedSequence, t: number) => Math.exp(logWeight(one, t));
const ofSequence = (one: EvaluatedSequence) =>
  Math.exp(one.mask.reduce((sum, bit, t) => (bit ? sum + logWeight(one, t) : sum), 0));
const WEIGHTS: Record<string, Mode["weight"]> = {
  token_truncate: ofToken,
  token_mask: ofToken,
  geometric_mask: ofToken,
  sequence_truncate: ofSequence,
  sequence_mask: ofSequence,
};
const MODES = Object.keys(WEIGHTS);

/** The variant with these settings, where the algorithm has them. */
function accepted(algorithm: AlgorithmUnderTest, settings: { importance: string }): Mode[] {
  try {
    return [{
      ...settings,
      variant: algorithm.vary(settings),
      weight: WEIGHTS[settings.importance]!,
    }];
  } catch (error) {
    if (!(error instanceof ZodError)) throw error;
    return [];
  }
}

function near(actual: number, expected: number, bound: number): void {
  ok(Math.abs(actual - expected) <= bound, `${actual} is not within ${bound} of ${expected}`);
}
