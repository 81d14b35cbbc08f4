/**
 * Printed torch modules of every combination of two settings, and of every profile: each imports,
 * runs alone and is the interpreter.
 */
import { deepStrictEqual, match, ok } from "node:assert/strict";
import { ALGORITHMS, type AnyAlgorithm, torchModule, traceAlgorithm } from "../../../algs/mod.ts";
import type { Expression } from "../../../data/mod.ts";
import { combinations } from "./setting_combinations.ts";
import { randomStep } from "./steps.ts";
import { INTERPRETER } from "../drivers/torch.ts";

type Values = { differentiated: unknown; loss: number; metrics: Record<string, number> };
type Beside = { interpreter: Values; module: Values };

/** Each expression once, with the first settings that gave it. */
function expressionsOf(
  algorithm: AnyAlgorithm,
): Map<string, { expression: Expression; title: string }> {
  const found = new Map<string, { expression: Expression; title: string }>();
  for (const settings of combinations(algorithm)) {
    for (const [part, expression] of Object.entries(traceAlgorithm(algorithm, settings))) {
      const key = JSON.stringify(expression);
      if (!found.has(key)) {
        found.set(key, { expression, title: `${part} of ${JSON.stringify(settings)}` });
      }
    }
  }
  return found;
}

for (const algorithm of Object.values(ALGORITHMS) as AnyAlgorithm[]) {
  Deno.test(`torchModule() of ${algorithm.name} runs alone as the interpreter`, async () => {
    const all = [...expressionsOf(algorithm).values()];
    const cases = all.map(({ expression, title }, i) => {
      const pairs = expression.nodes.some(({ kind }) => kind === "pair");
      const coef = expression.inputs.flatMap((
        name,
      ) => (name.startsWith("coef.") ? [name.slice(5)] : []));
      const source = torchModule(expression, { title });
      const imports = source.split("\n").filter((line) => /^\s*(import|from) /.test(line));
      match(imports.join("; "), /^(import math; )?import torch$/, title);
      return { expression, source, step: randomStep(1 + i, { pairs, empty: i % 2 === 0, coef }) };
    });
    const outcomes = await INTERPRETER.ask("printed", cases) as Beside[];
    for (const [i, { interpreter, module }] of outcomes.entries()) {
      deepStrictEqual(module.differentiated, interpreter.differentiated, all[i]!.title);
      for (
        const [name, value] of Object.entries({ loss: interpreter.loss, ...interpreter.metrics })
      ) {
        const computed = { loss: module.loss, ...module.metrics }[name]!;
        ok(
          Math.abs(computed - value) <= 1e-12 * Math.max(1, Math.abs(value)),
          `${all[i]!.title}: ${name} is ${computed}`,
        );
      }
    }
  });
}
