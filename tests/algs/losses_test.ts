/**
 * The properties of every loss, run on every algorithm of the product's table and of the tests'. An algorithm joins by
 * being in a table; its `examples` are tried besides its defaults.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { Expression } from "../../data/mod.ts";
import {
  ALGORITHMS,
  type AnyAlgorithm,
  evaluate,
  type EvaluatedStep,
  INPUTS,
  layoutOf,
  liveModel,
  traceAlgorithm,
} from "../../algs/mod.ts";
import { BranchCount, edgeSteps } from "./branches.ts";
import { cutsOf, randomStep, withMasked, withToken } from "./steps.ts";
import { TEST_ALGORITHMS } from "./test_losses.ts";
import { runTorch, type TorchCase, type TorchOutcome } from "./torch.ts";

const H = 1e-6;
const ALL: Record<string, AnyAlgorithm> = { ...ALGORITHMS, ...TEST_ALGORITHMS };

/** One expression and everything that torch computes of it. */
type Plan = { title: string; expression: Expression; whole: TorchCase[]; noisy: TorchCase; edges: TorchCase[] };

function planOf(title: string, expression: Expression): Plan {
  const pairs = expression.nodes.some(({ kind }) => kind === "pair");
  const steps = [1, 2, 3].map((seed) => randomStep(seed, { pairs, empty: seed === 3 }));
  const whole = steps.map((step) => ({ expression, step, cuts: cutsOf(step.sequences.length, { pairs }) }));
  const one = whole[0]!.cuts.slice(0, 1);
  const noisy = { ...steps[0]!, sequences: steps[0]!.sequences.map((sequence) => withMasked(sequence, 7.5)) };
  const edges = edgeSteps(expression, steps[1]!, H).map((step) => ({ expression, step, cuts: one }));
  return { title, expression, whole, noisy: { expression, step: noisy, cuts: one }, edges };
}

const PLANS = Object.entries(ALL).flatMap(([name, algorithm]) =>
  [{}, ...(algorithm.examples ?? [])].flatMap((example) => {
    const { loss, value_loss } = traceAlgorithm(algorithm, example);
    const settings = JSON.stringify(example);
    return [
      planOf(`${name} ${settings}`, loss),
      ...(value_loss ? [planOf(`${name} value_loss ${settings}`, value_loss)] : []),
    ];
  })
);

type Ran = { test: TorchCase; outcomes: TorchOutcome[] };
let running: Promise<Map<TorchCase, TorchOutcome[]>> | undefined;

/** All cases of all plans in one Python process, once. */
async function ran(tests: readonly TorchCase[]): Promise<Ran[]> {
  const all = PLANS.flatMap(({ whole, noisy, edges }) => [...whole, noisy, ...edges]);
  running ??= runTorch(all).then((outcomes) => new Map(all.map((test, i) => [test, outcomes[i]!])));
  const found = await running;
  return tests.map((test) => ({ test, outcomes: found.get(test)! }));
}

/** Places of every live number that the loss may depend on. */
function livePlaces(expression: Expression, step: EvaluatedStep): { name: string; s: number; t: number }[] {
  return expression.inputs.filter((name) => liveModel(name)).flatMap((name) =>
    step.sequences.flatMap(({ mask }, s) =>
      (name === "score" ? [0] : [...mask.keys()].filter((t) => mask[t])).map((t) => ({ name, s, t }))
    )
  );
}

/** Central differences of the reference evaluator's value, every `detach` frozen at the unperturbed step. */
function differences(
  expression: Expression,
  step: EvaluatedStep,
): { name: string; s: number; t: number; slope: number }[] {
  const base = evaluate(expression, step);
  return livePlaces(expression, step).map((place) => {
    const column = step.sequences[place.s]!.inputs[place.name]!;
    const x = typeof column === "number" ? column : column[place.t]!;
    const at = (offset: number) => evaluate(expression, withToken(step, place, x + offset), base).loss;
    return { ...place, slope: (at(H) - at(-H)) / (2 * H) };
  });
}

function close(
  actual: number,
  expected: number,
  { tolerance, scale, what }: { tolerance: number; scale: number; what: string },
) {
  const bound = tolerance * Math.max(Math.abs(expected), scale);
  ok(
    Math.abs(actual - expected) <= bound,
    `${what}: torch ${actual}, reference ${expected}, allowed difference ${bound}`,
  );
}

function largest(gradients: TorchOutcome["gradients"]): number {
  return Math.max(...Object.values(gradients).flat(2).map(Math.abs));
}

for (const plan of PLANS) {
  const { title, expression } = plan;

  Deno.test(`loss ${title}: torch's value and metrics are the reference evaluator's`, async () => {
    for (const { test, outcomes } of await ran([...plan.whole, ...plan.edges])) {
      const reference = evaluate(expression, test.step);
      const options = { tolerance: 1e-12, scale: 1e-3 };
      close(outcomes[0]!.loss, reference.loss, { ...options, what: "loss" });
      deepStrictEqual(Object.keys(outcomes[0]!.metrics), Object.keys(reference.metrics));
      for (const [name, value] of Object.entries(reference.metrics)) {
        close(outcomes[0]!.metrics[name]!, value, { ...options, what: name });
      }
    }
  });

  Deno.test(`loss ${title}: torch's gradient is the central difference, at corners too`, async () => {
    for (const { test, outcomes } of await ran([...plan.whole, ...plan.edges])) {
      const { gradients } = outcomes[0]!;
      for (const { name, s, t, slope } of differences(expression, test.step)) {
        const what = `d loss / d ${name}[${s}][${t}]`;
        close(gradients[name]![s]![t]!, slope, { tolerance: 1e-6, scale: 0.05 * largest(gradients), what });
      }
    }
  });

  Deno.test(`loss ${title}: no cut into micro-batches and ranks changes gradient, loss or metrics`, async () => {
    for (const { outcomes } of await ran(plan.whole)) {
      const [first, ...others] = outcomes;
      const scale = largest(first!.gradients);
      for (const other of others) {
        strictEqual(other.loss, first!.loss, "the same bits");
        deepStrictEqual(other.metrics, first!.metrics, "the same bits");
        for (const [name, rows] of Object.entries(first!.gradients)) {
          rows.forEach((row, s) =>
            row.forEach((g, t) =>
              close(other.gradients[name]![s]![t]!, g, { tolerance: 1e-12, scale, what: `${name}[${s}][${t}]` })
            )
          );
        }
      }
    }
  });

  Deno.test(`loss ${title}: masked positions have gradient 0, and NaN there changes no bit`, async () => {
    const [clean] = await ran([plan.noisy]);
    const [withNaN] = await ran([plan.whole[0]!]);
    deepStrictEqual(withNaN!.outcomes[0], clean!.outcomes[0]);
    for (const { test, outcomes } of await ran(plan.whole)) {
      for (const [name, rows] of Object.entries(outcomes[0]!.gradients)) {
        if (name === "score") continue;
        rows.forEach((row, s) =>
          row.forEach((g, t) => ok(test.step.sequences[s]!.mask[t] || g === 0, `${name}[${s}][${t}]`))
        );
      }
    }
  });

  Deno.test(`loss ${title}: the cases reach every branch and every sign of the advantage`, () => {
    const count = new BranchCount(expression);
    const signs = new Set<number>();
    for (const { step } of [...plan.whole, ...plan.edges]) {
      const evaluation = evaluate(expression, step);
      count.add(step, evaluation);
      const place = expression.nodes.findIndex((node) => node.op === "input" && node.name === "advantage");
      if (place >= 0) evaluation.values[place]!.forEach((a) => signs.add(Math.sign(a)));
      ok(step.sequences.some(({ mask }) => mask.includes(0)) && layoutOf(step).size.token > 0);
    }
    deepStrictEqual(count.never(), [], "branches that no case takes");
    if (expression.inputs.includes("advantage")) deepStrictEqual([...signs].sort(), [-1, 0, 1]);
  });
}

Deno.test("the table's losses and the tests' losses read every input of the language", () => {
  const read = new Set(
    PLANS.flatMap(({ expression }) => expression.inputs.filter((name) => !name.startsWith("coef."))),
  );
  deepStrictEqual([...read].sort(), Object.keys(INPUTS).sort());
});

Deno.test("the table's losses and the tests' losses use every operation of the language", async () => {
  const { BINARY, UNARY } = await import("../../data/mod.ts");
  const used = new Set<string>(PLANS.flatMap(({ expression }) => expression.nodes.map(({ op }) => op)));
  deepStrictEqual([...UNARY, ...BINARY, "clamp", "where", "scalar", "input"].filter((op) => !used.has(op)), []);
});
