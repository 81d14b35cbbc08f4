/** What algorithms of the table are to each other. */
import { ok } from "node:assert/strict";
import { ONLINE_ALGORITHMS } from "../../../algs/mod.ts";
import { traced } from "./traced.ts";
import type { FullRound } from "./asked_of.ts";

type Name = keyof typeof ONLINE_ALGORITHMS;

const SIZES: Record<number, number> = { 0: 3, 1: 4 };
const GROUP = [0, 0, 0, 1, 1, 1, 1];
const zeros = GROUP.map(() => [0, 0]);

/**
 * Two groups of two-token completions; the reference is the policy, and a value model knows
 * nothing.
 */
const ROUND: FullRound = {
  group: GROUP,
  length: GROUP.map(() => 2),
  reward: [1, 0, 0.25, 2, 0, 0, 1.5],
  stop: GROUP.map(() => "stop"),
  old_logp: zeros,
  ref_logp: zeros,
  values: zeros,
  bootstrap: GROUP.map(() => 0),
  coef: {},
  parts: [],
};

async function advantages(
  name: Name,
  settings: Record<string, unknown>,
  reward: number[],
): Promise<number[]> {
  const { credit } = traced(ONLINE_ALGORITHMS[name]).vary(settings);
  const parts = [{ name: "only", weight: 1, paid: reward }];
  return (await credit!({ ...ROUND, reward, parts })).advantage.flat();
}

function close(actual: readonly number[], expected: readonly number[], bound: number): void {
  ok(actual.length === expected.length);
  actual.forEach((value, i) =>
    ok(Math.abs(value - expected[i]!) <= bound, `${actual} is not ${expected}`)
  );
}

Deno.test("RLOO's advantages are Dr. GRPO's times G / (G - 1)", async () => {
  const [rloo, dr_grpo] = await Promise.all(
    (["rloo", "dr_grpo"] as const).map((name) => advantages(name, {}, ROUND.reward)),
  );
  close(rloo!, dr_grpo!.map((a, i) => (a * SIZES[GROUP[i]!]!) / (SIZES[GROUP[i]!]! - 1)), 1e-15);
});

Deno.test("GRPO's advantages are Dr. GRPO's divided by their group's deviation", async () => {
  const [grpo, dr_grpo] = await Promise.all([
    advantages("grpo", { std_epsilon: 0 }, ROUND.reward),
    advantages("dr_grpo", {}, ROUND.reward),
  ]);
  const deviation = [0, 1].map((group) => {
    const advantages = dr_grpo.filter((_, i) => GROUP[i] === group);
    return Math.sqrt(advantages.reduce((sum, a) => sum + a * a, 0) / (advantages.length - 1));
  });
  close(grpo, dr_grpo.map((a, i) => a / deviation[GROUP[i]!]!), 1e-15);
});

/**
 * Whose advantages stay where all rewards are scaled, as the epsilon beside a deviation goes to 0;
 * null: they scale.
 */
const STAYS: Partial<Record<Name, Record<string, unknown> | null>> = {
  grpo: { std_epsilon: 0 },
  dapo: { std_epsilon: 0 },
  gspo: { std_epsilon: 0 },
  cispo: { std_epsilon: 0 },
  sapo: { std_epsilon: 0 },
  gdpo: { std_epsilon: 0 },
  p3o: { std_epsilon: 0 },
  ppo: {},
  reinforce_plus_plus: {},
  reinforce_plus_plus_baseline: {},
  dr_grpo: null,
  rloo: null,
  reinforce: null,
};

for (const [name, settings] of Object.entries(STAYS) as [Name, Record<string, unknown> | null][]) {
  const effect = settings ? "change no advantage" : "scale every advantage";
  Deno.test(`${name}: scaled rewards ${effect}`, async () => {
    const first = await advantages(name, settings ?? {}, ROUND.reward);
    const scaled = await advantages(name, settings ?? {}, ROUND.reward.map((r) => 7 * r));
    close(scaled, settings ? first : first.map((a) => 7 * a), 1e-7);
    ok(first.some((a) => Math.abs(a) > 0.1));
  });
}
