/**
 * Algorithms in Python under the same properties as those of the table, and equal to their twins
 * there.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import { ALGORITHMS, INPUTS } from "../../../algs/mod.ts";
import { testProperties } from "./properties.ts";
import { pythonFile } from "./python_file.ts";
import { cutsOf, randomStep, uniform } from "./steps.ts";
import { INTERPRETER } from "../drivers/torch.ts";
import { traced } from "./traced.ts";
import type { FullRound, LossUnderTest, Outcome, Variant } from "./asked_of.ts";

const FILES = new URL("../python/", import.meta.url).pathname;
const TWINS = await Promise.all(
  (["p3o", "grpo", "gdpo", "reward_model", "kto"] as const).map(async (name) => ({
    file: await pythonFile(`${FILES}${name}.py`),
    twin: traced(ALGORITHMS[name]),
  })),
);

for (const { file } of TWINS) testProperties(file);

for (const { file, twin } of TWINS) {
  for (const [i, variant] of file.variants.entries()) {
    const other = twin.vary([{}, ...file.examples][i]!);

    Deno.test(`${variant.title} has loss, metrics and gradient of ${twin.name}`, async () => {
      const [{ pairs }] = variant.losses as [LossUnderTest];
      const cases = [1, 2, 3].map((seed) => {
        const step = randomStep(seed, { pairs, empty: seed === 3 });
        return { step, cuts: cutsOf(step.sequences.length, { pairs }) };
      });
      const [ours, theirs] = await Promise.all(
        [variant, other].map((one) => one.losses[0]!.differentiate(cases)),
      );
      for (const [k, outcomes] of ours!.entries()) {
        outcomes.forEach((one, c) => same(one, theirs![k]![c]!));
      }
    });

    if (variant.credit === undefined) continue;
    Deno.test(`${variant.title} assigns the advantages of the table's ${twin.name}`, async () => {
      for (const seed of [1, 2]) {
        const [ours, theirs] = await Promise.all([variant, other].map((one) => credit(one, seed)));
        deepStrictEqual(ours!.map((value) => value === 0), theirs!.map((value) => value === 0));
        for (const [n, value] of ours!.entries()) near(value, theirs![n]!, `advantage ${n}`);
      }
    });
  }
}

Deno.test("the inputs of a Python loss are those of the language, by name and kind", async () => {
  const kinds = Object.fromEntries(Object.entries(INPUTS).map(([name, { kind }]) => [name, kind]));
  deepStrictEqual(await INTERPRETER.ask("kinds", null), kinds);
});

function same(ours: Outcome, theirs: Outcome): void {
  near(ours.loss, theirs.loss, "loss");
  for (const [name, value] of Object.entries(ours.metrics)) {
    near(value, theirs.metrics[name]!, name);
  }
  deepStrictEqual(Object.keys(ours.gradients), Object.keys(theirs.gradients));
  for (const [name, rows] of Object.entries(ours.gradients)) {
    rows.forEach((row, s) =>
      row.forEach((value, t) => near(value, theirs.gradients[name]![s]![t]!, `${name} ${s} ${t}`))
    );
  }
}

/** A round with groups of unequal size, one of them with equal rewards. */
async function credit({ credit }: Variant, seed: number): Promise<number[]> {
  const next = uniform(seed);
  const group = [0, 0, 0, 1, 1, 2, 2, 2, 2];
  const rewards = group.map((g) => (g === 1 ? 0.1 : next()));
  const rows = group.map(() => [-1, -2]);
  const round: FullRound = {
    reward: rewards,
    group,
    stop: group.map(() => "stop"),
    length: group.map(() => 2),
    old_logp: rows,
    ref_logp: rows,
    values: rows,
    bootstrap: group.map(() => 0),
    parts: [
      { name: "right", weight: 1, paid: rewards },
      { name: "short", weight: -0.5, paid: group.map((_, i) => i % 4 === 1 ? null : next()) },
    ],
    coef: { kl: 0 },
  };
  return (await credit!(round)).advantage as number[];
}

function near(ours: number, theirs: number, what: string): void {
  const bound = 1e-12 * Math.max(Math.abs(theirs), 1e-3);
  ok(Math.abs(ours - theirs) <= bound, `${what}: ${ours} in Python, ${theirs} in the table`);
}
