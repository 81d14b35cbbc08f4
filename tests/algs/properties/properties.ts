/**
 * The properties of an algorithm's losses that hold for every algorithm. `properties_test.ts` asks
 * them of the table; a file in another language joins by answering `AlgorithmUnderTest`.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { EvaluatedStep } from "../../../algs/mod.ts";
import { coefOf, differentiateWhole, firstCut, once } from "./asked.ts";
import { BranchCount, type Edge, findEdges, type Place } from "./corners.ts";
import { testCredit } from "./properties_credit.ts";
import { testPolicyGradients } from "./properties_policy.ts";
import { cutsOf, randomStep, withFineSequences, withMasked, withToken } from "./steps.ts";
import type { AlgorithmUnderTest, Held, LossUnderTest, Outcome } from "./asked_of.ts";

/** Half the distance of a central difference. */
const H = 1e-6;
const SEQUENCE_INPUTS = ["score"];
const LIVE = ["logp", "entropy", "values", "score"];

/**
 * Corners that torch was exactly at, by operation. Not every one can be met: exp(x) is 5 for no
 * floating-point number x.
 */
export const MET_EXACTLY = new Map<string, number>();

/** Registers the tests of an algorithm: its defaults and each of its examples. */
export function testProperties(algorithm: AlgorithmUnderTest): void {
  algorithm.variants.flatMap(({ losses }) => losses).forEach(testLoss);
  testPolicyGradients(algorithm);
  testCredit(algorithm);
}

/** Registers the tests of a loss, whatever it means. */
export function testLoss(loss: LossUnderTest): void {
  const cases = once(() => casesOf(loss));
  testGradient(loss, cases);
  testCuts(loss, cases);
}

function testGradient(loss: LossUnderTest, cases: () => Promise<Cases>): void {
  const { title } = loss;

  Deno.test(`loss ${title}: torch's value and metrics are the reference's`, async () => {
    const { whole, outcomes } = await cases();
    const probes = await loss.probe(whole);
    for (const [i, { loss, metrics }] of probes.entries()) {
      const [found] = outcomes[i]!;
      const options = { tolerance: 1e-12, scale: 1e-3 };
      near(found!.loss, loss, { ...options, what: "loss" });
      deepStrictEqual(Object.keys(found!.metrics).sort(), Object.keys(metrics).sort());
      for (const [name, value] of Object.entries(metrics)) {
        near(found!.metrics[name]!, value, { ...options, what: name });
      }
    }
  });

  Deno.test(`loss ${title}: its gradient is the central difference, near corners too`, async () => {
    const { whole, outcomes, beside } = await cases();
    const there = await differentiateWhole(loss, beside.map(({ step }) => step));
    for (const [i, step] of whole.entries()) {
      await sameSlopes(loss, { step, outcome: outcomes[i]![0]! });
    }
    for (const [i, { step, s }] of beside.entries()) {
      await sameSlopes(loss, { step, outcome: there[i]!, s });
    }
  });

  Deno.test(`loss ${title}: exactly at a corner the gradient is torch's convention`, async () => {
    const edges = await findEdges(loss, withFineSequences((await cases()).whole[1]!));
    for (const edge of edges) {
      const found = await firstExact(loss, edge);
      if (found === null) continue;
      const sides = Object.fromEntries(
        found.outcome.corners!.map(({ name, sides }) => [name, sides]),
      );
      await sameSlopes(loss, { ...found, sides, s: edge.place.s });
      const operation = edge.title.split(" ").at(-2)!;
      MET_EXACTLY.set(operation, (MET_EXACTLY.get(operation) ?? 0) + 1);
    }
  });

  Deno.test(`loss ${title}: the cases take every branch and sign of the advantage`, async () => {
    const { whole, beside } = await cases();
    const count = new BranchCount();
    for (const probe of await loss.probe([...whole, ...beside.map(({ step }) => step)])) {
      count.add(probe);
    }
    deepStrictEqual(count.never(), [], "branches that no case takes");
    const signs = whole.flatMap(({ sequences }) =>
      sequences.flatMap(({ inputs, mask }) =>
        (inputs.advantage as number[]).flatMap((a, t) => (mask[t] ? [Math.sign(a)] : []))
      )
    );
    deepStrictEqual([...new Set(signs)].sort(), [-1, 0, 1]);
    ok(whole.every(({ sequences }) => sequences.some(({ mask }) => mask.includes(0))));
  });
}

function testCuts({ title, ...loss }: LossUnderTest, cases: () => Promise<Cases>): void {
  Deno.test(`loss ${title}: no cut into micro-batches and ranks changes anything`, async () => {
    for (const [first, ...others] of (await cases()).outcomes) {
      const scale = largest(first!.gradients);
      for (const other of others) {
        strictEqual(other.loss, first!.loss, "the same bits");
        deepStrictEqual(other.metrics, first!.metrics, "the same bits");
        for (const { place, gradient } of flat(other.gradients)) {
          near(gradient, at(first!.gradients, place), {
            tolerance: 1e-12,
            scale,
            what: placeText(place),
          });
        }
      }
    }
  });

  Deno.test(`loss ${title}: masked positions have gradient 0, and may hold NaN`, async () => {
    const { whole, outcomes } = await cases();
    const clean = whole.map((step) => ({
      ...step,
      sequences: step.sequences.map((one) => withMasked(one, 7.5)),
    }));
    const found = await loss.differentiate(
      clean.map((step, i) => ({ step, cuts: [firstCut(whole[i]!)] })),
    );
    found.forEach(([outcome], i) => deepStrictEqual(outcome, outcomes[i]![0]));
    for (const [i, [outcome]] of outcomes.entries()) {
      for (const { place, gradient } of flat(outcome!.gradients)) {
        if (SEQUENCE_INPUTS.includes(place.name)) continue;
        ok(whole[i]!.sequences[place.s]!.mask[place.t] || gradient === 0, placeText(place));
      }
    }
  });
}

/** A step beside a corner: what was moved there is in sequence `s`. */
type Beside = { step: EvaluatedStep; s: number };
type Cases = {
  whole: EvaluatedStep[];
  outcomes: readonly (readonly Outcome[])[];
  beside: Beside[];
};

async function casesOf(loss: LossUnderTest): Promise<Cases> {
  const { pairs } = loss;
  const options = { pairs, coef: coefOf(loss) };
  const whole = [1, 2, 3].map((seed) => randomStep(seed, { ...options, empty: seed === 3 }));
  const outcomes = await loss.differentiate(
    whole.map((step) => ({ step, cuts: cutsOf(step.sequences.length, { pairs }) })),
  );
  const edges = await findEdges(loss, whole[1]!);
  const beside = edges.flatMap(({ place: { s }, beside }) =>
    [-10 * H, 10 * H].map((offset) => ({ step: beside(offset), s }))
  );
  return { whole, outcomes, beside };
}

type Slopes = {
  step: EvaluatedStep;
  outcome: Outcome;
  sides?: Held["sides"];
  /** Only of this sequence. */
  s?: number;
};

/**
 * Torch's gradient of one step against differences of the reference's value, every `detach` frozen.
 */
async function sameSlopes(loss: LossUnderTest, { step, outcome, sides, s }: Slopes): Promise<void> {
  const places = livePlaces(loss, step).filter((place) => s === undefined || place.s === s);
  const moved = places.flatMap((place) => [H, -H].map((offset) => movedBy(step, place, offset)));
  const values = await loss.probe(moved, { detached: step, sides });
  const scale = 0.05 * largest(outcome.gradients);
  for (const [i, place] of places.entries()) {
    const [above, below] = [values[2 * i]!.loss, values[2 * i + 1]!.loss];
    const rounding = 2 * Number.EPSILON * (Math.abs(above) + Math.abs(below)) / (2 * H);
    const options = { tolerance: 1e-6, scale, rounding, what: `d loss / d ${placeText(place)}` };
    near(at(outcome.gradients, place), (above - below) / (2 * H), options);
  }
}

/** Places of every live number that the loss may depend on. */
function livePlaces({ reads }: LossUnderTest, { sequences }: EvaluatedStep): Place[] {
  return reads.filter((name) => LIVE.includes(name)).flatMap((name) =>
    sequences.flatMap(({ mask }, s) =>
      (SEQUENCE_INPUTS.includes(name) ? [0] : [...mask.keys()].filter((t) => mask[t])).map((t) => ({
        name,
        s,
        t,
      }))
    )
  );
}

function movedBy(step: EvaluatedStep, place: Place, offset: number): EvaluatedStep {
  const column = step.sequences[place.s]!.inputs[place.name]!;
  return withToken(step, place, (typeof column === "number" ? column : column[place.t]!) + offset);
}

/**
 * The first step at which torch itself is exactly at the corner; null: no floating-point number is,
 * or torch tells of none.
 */
async function firstExact(
  loss: LossUnderTest,
  { title, at }: Edge,
): Promise<{ step: EvaluatedStep; outcome: Outcome } | null> {
  const [first, ...around] = at();
  for (const steps of [[first!], around]) {
    const outcomes = await differentiateWhole(loss, steps, { corners: true });
    const i = outcomes.findIndex((outcome) => isExact(outcome, title));
    if (i >= 0) return { step: steps[i]!, outcome: outcomes[i]! };
    if (!outcomes[0]?.corners?.some(({ name }) => title.startsWith(`${name} `))) return null;
  }
  return null;
}

function isExact({ corners }: Outcome, title: string): boolean {
  return (corners ?? []).some(({ name, distances }) =>
    distances.some((values, bound) => `${name} ${bound}` === title && values.includes(0))
  );
}

type Gradients = Outcome["gradients"];

const at = (gradients: Gradients, { name, s, t }: Place) => gradients[name]![s]![t]!;
const placeText = ({ name, s, t }: Place) => `${name}[${s}][${t}]`;
const largest = (gradients: Gradients) =>
  Math.max(...Object.values(gradients).flat(2).map(Math.abs));

function flat(gradients: Gradients): { place: Place; gradient: number }[] {
  return Object.entries(gradients).flatMap(([name, rows]) =>
    rows.flatMap((row, s) => row.map((gradient, t) => ({ place: { name, s, t }, gradient })))
  );
}

function near(
  actual: number,
  expected: number,
  { tolerance, scale, what, rounding = 0 }: {
    tolerance: number;
    scale: number;
    what: string;
    rounding?: number;
  },
): void {
  const bound = tolerance * Math.max(Math.abs(expected), scale) + rounding;
  ok(
    Math.abs(actual - expected) <= bound,
    `${what}: torch ${actual}, reference ${expected}, allowed difference ${bound}`,
  );
}
