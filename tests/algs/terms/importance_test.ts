import { deepStrictEqual, ok } from "node:assert/strict";
import { z } from "zod";
import {
  checkImportance,
  defineAlgorithm,
  evaluate,
  type EvaluatedStep,
  importanceSettings,
  importanceWeight,
  stepSum,
  traceAlgorithm,
} from "../../../algs/mod.ts";

const Settings = z.strictObject(importanceSettings).superRefine(checkImportance);

/** The sum of weight · advantage; a loss must read something live. */
const weighted = defineAlgorithm({
  name: "weighted",
  config: Settings,
  loss: (x, c) => {
    const term = x.advantage.add(x.logp.mul(0)); // [B, T]
    const weight = importanceWeight(x, c);
    return { loss: stepSum(weight === null ? term : term.mul(weight)) };
  },
});

/**
 * Weights [0.5, 4] and [1.5]: products 2 and 1.5, geometric means √2 and 1.5. Advantages pick the
 * weights out.
 */
const step: EvaluatedStep = {
  sequences: [[0.5, 4], [1.5]].map((weights, s) => ({
    group: 0,
    mask: weights.map(() => 1),
    inputs: {
      logp: weights.map(() => -1),
      old_logp: weights.map(() => -1),
      behaviour_logp: weights.map((w) => -1 - Math.log(w)),
      advantage: weights.map((_, t) => [[1, 100], [10_000]][s]![t]!),
    },
  })),
};

/** The weight of each of the three tokens. */
function weights(changes: z.input<typeof Settings>): number[] {
  const { loss } = traceAlgorithm(weighted, changes);
  return step.sequences.flatMap((sequence, s) =>
    sequence.mask.map((_, t) => {
      const only = step.sequences.map((one, i) => ({
        ...one,
        inputs: { ...one.inputs, advantage: one.mask.map((_, k) => (i === s && k === t ? 1 : 0)) },
      }));
      return evaluate(loss, { sequences: only }).loss;
    })
  );
}

function expectWeights(changes: z.input<typeof Settings>, expected: number[]): void {
  weights(changes).forEach((w, i) =>
    ok(Math.abs(w - expected[i]!) < 1e-12, `${JSON.stringify(changes)}: ${w}`)
  );
}

Deno.test("importanceWeight() truncates or masks token weights", () => {
  expectWeights({}, [1, 1, 1]);
  expectWeights({ importance: "token_truncate" }, [0.5, 2, 1.5]);
  expectWeights({ importance: "token_truncate", importance_low: 0.8, importance_high: 1.2 }, [
    0.8,
    1.2,
    1.2,
  ]);
  expectWeights({ importance: "token_mask" }, [0.5, 0, 1.5]);
  expectWeights({ importance: "token_mask", importance_low: 0.8 }, [0, 0, 1.5]);
});

Deno.test("importanceWeight() without bounds is the exact weight, truncated or masked", () => {
  for (const importance of ["token_truncate", "token_mask", "geometric_mask"] as const) {
    expectWeights({ importance, importance_high: null }, [0.5, 4, 1.5]);
  }
  for (const importance of ["sequence_truncate", "sequence_mask"] as const) {
    expectWeights({ importance, importance_high: null }, [2, 2, 1.5]);
  }
});

Deno.test("importanceWeight() judges a completion by its product, or filters by its mean", () => {
  expectWeights({ importance: "sequence_truncate", importance_high: 1.8 }, [1.8, 1.8, 1.5]);
  expectWeights({ importance: "sequence_mask", importance_high: 1.8 }, [0, 0, 1.5]);
  expectWeights({ importance: "geometric_mask", importance_high: 1.45 }, [0.5, 4, 0]);
  expectWeights({ importance: "geometric_mask", importance_low: 1.45, importance_high: null }, [
    0,
    0,
    1.5,
  ]);
});

Deno.test("a masked completion whose weight overflows has weight 0, not NaN", () => {
  const far = step.sequences.map((one) => ({
    ...one,
    inputs: { ...one.inputs, behaviour_logp: [-900, -900] },
  }));
  const { loss } = traceAlgorithm(weighted, { importance: "sequence_mask" });
  deepStrictEqual(evaluate(loss, { sequences: far }).loss, 0);
});

Deno.test("checkImportance() refuses bounds with nothing between them", () => {
  const { error } = Settings.safeParse({
    importance: "token_mask",
    importance_low: 2,
    importance_high: 1,
  });
  deepStrictEqual(error?.issues.map(({ message }) => message), [
    "must be less than importance_high (1)",
  ]);
});
