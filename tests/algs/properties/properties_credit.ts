/** Properties of credit that hold for every algorithm that learns from rewards. */
import { deepStrictEqual, ok } from "node:assert/strict";
import type { Assigned } from "../../../algs/mod.ts";
import { uniform } from "./steps.ts";
import type { AlgorithmUnderTest, FullRound, Variant } from "./asked_of.ts";

/** Registers them for every variant that has credit. */
export function testCredit(algorithm: AlgorithmUnderTest): void {
  for (const variant of algorithm.variants) {
    if (variant.credit === undefined) continue;
    testShape(variant);
    testScale(variant);
    testBootstrap(variant);
    if (algorithm.group_min > 1) testGroups(variant);
  }
}

function testShape(variant: Variant): void {
  Deno.test(`credit ${variant.title}: a finite number per sequence or token`, async () => {
    for (const round of [roundOf(1), roundOf(2), equalRewards(roundOf(3))]) {
      const assigned = await assign(variant, round);
      for (const values of [assigned.advantage, assigned.returns ?? []]) {
        values.forEach((value, i) => ok(!Array.isArray(value) || value.length === round.length[i]));
        ok(values.flat().every(Number.isFinite));
      }
      deepStrictEqual(assigned.advantage.length, round.reward.length);
    }
  });
}

/** Samples of a prompt are compared with each other. */
function testGroups(variant: Variant): void {
  Deno.test(`credit ${variant.title}: a constant added to a group changes nothing`, async () => {
    const round = roundOf(4);
    const shift = (i: number) => (round.group[i] === 1 ? 3 : -2);
    const shifted = {
      ...round,
      reward: round.reward.map((r, i) => r + shift(i)),
      parts: withPaid(round, (paid, i) => paid + shift(i)),
    };
    close(await advantages(variant, shifted), await advantages(variant, round), 1e-9);
  });

  Deno.test(`credit ${variant.title}: a group of equal rewards has advantage 0`, async () => {
    const round = withoutKl(equalRewards(roundOf(5)));
    ok((await advantages(variant, round)).every((value) => value === 0));
  });
}

/** Rewards are either normalised or not: scaled, their advantages stay or scale with them. */
function testScale(variant: Variant): void {
  Deno.test(`credit ${variant.title}: advantages stay or scale with the rewards`, async () => {
    const round = withoutKl(roundOf(6, { equal_lengths: true }));
    const first = await advantages(variant, round);
    const size = Math.max(...first.map(Math.abs));
    const scaled = await advantages(variant, scaledBy(round, SCALE));
    const miss = (factor: number) =>
      Math.max(...first.map((a, i) => Math.abs(scaled[i]! - factor * a)));
    // A normalised advantage has an epsilon beside a deviation of about 1.
    const epsilon = Number(variant.settings.std_epsilon ?? 1e-8);
    const stays = miss(1) <= 10 * epsilon * size;
    ok(stays || miss(SCALE) <= 1e-12 * SCALE * size, `${first} became ${scaled}`);
  });
}

/**
 * What follows a sequence that truly stopped is nothing; a value model tells what would have
 * followed one that was cut.
 */
function testBootstrap(variant: Variant): void {
  Deno.test(`credit ${variant.title}: only a cut sequence has value after its end`, async () => {
    const round = roundOf(7);
    const changed = (stop: string) => ({
      ...round,
      bootstrap: round.bootstrap.map((value, i) => (round.stop[i] === stop ? value + 1 : value)),
    });
    const first = await advantages(variant, round);
    deepStrictEqual(await advantages(variant, changed("stop")), first);
    const after = await advantages(variant, changed("length"));
    deepStrictEqual(after.some((value, i) => value !== first[i]), variant.losses.length > 1);
  });
}

const SCALE = 7;

/** Two groups of unequal size and one of one: ragged, with all that credit may ask for. */
function roundOf(
  seed: number,
  { equal_lengths = false }: { equal_lengths?: boolean } = {},
): FullRound {
  const next = uniform(seed);
  const group = [0, 0, 0, 1, 1, 1, 1, 2];
  const length = group.map(() => (equal_lengths ? 3 : 1 + Math.floor(4 * next())));
  const rows = (make: () => number) => length.map((tokens) => Array.from({ length: tokens }, make));
  return {
    group,
    length,
    reward: group.map(() => Math.round(8 * next()) / 4),
    stop: group.map((_, i) => (i % 3 === 1 ? "length" : "stop")),
    old_logp: rows(() => -2 * next()),
    ref_logp: rows(() => -2 * next()),
    values: rows(() => 2 * next() - 1),
    bootstrap: group.map((_, i) => (i % 3 === 1 ? 2 * next() - 1 : 0)),
    coef: { kl: 0.05 },
    // One does not apply to every sample.
    parts: [2, 0.5].map((weight, k) => ({
      name: `part_${k}`,
      weight,
      paid: group.map((_, i) => (k === 1 && i % 4 === 3 ? null : Math.round(8 * next()) / 4)),
    })),
  };
}

/** The parts with other pay for the samples that they apply to. */
const withPaid = ({ parts }: FullRound, change: (paid: number, i: number) => number) =>
  parts.map((part) => ({
    ...part,
    paid: part.paid.map((paid, i) => paid === null ? null : change(paid, i)),
  }));

const withoutKl = (round: FullRound): FullRound => ({ ...round, ref_logp: round.old_logp });
const equalRewards = (round: FullRound): FullRound => ({
  ...round,
  reward: round.reward.map(() => 0.3),
  parts: withPaid(round, () => 0.3),
});

function scaledBy(round: FullRound, factor: number): FullRound {
  return {
    ...round,
    reward: round.reward.map((r) => r * factor),
    parts: withPaid(round, (paid) => paid * factor),
    values: round.values.map((row) => row.map((value) => value * factor)),
    bootstrap: round.bootstrap.map((value) => value * factor),
  };
}

const assign = ({ credit }: Variant, round: FullRound): Promise<Assigned> => credit!(round);

async function advantages(variant: Variant, round: FullRound): Promise<number[]> {
  return (await assign(variant, round)).advantage.flat();
}

function close(actual: readonly number[], expected: readonly number[], bound: number): void {
  ok(actual.length === expected.length);
  actual.forEach((value, i) =>
    ok(Math.abs(value - expected[i]!) <= bound, `${actual} is not ${expected}`)
  );
}
