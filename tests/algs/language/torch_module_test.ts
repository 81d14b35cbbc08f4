/**
 * Printed torch modules, imported and run beside the trainer's interpreter: every algorithm, every
 * example.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import { ALGORITHMS, type AnyAlgorithm, torchModule, traceAlgorithm } from "../../../algs/mod.ts";
import { randomStep } from "../properties/steps.ts";
import { PRINTED_ALGORITHMS } from "../properties/test_losses.ts";
import { INTERPRETER } from "../drivers/torch.ts";

type Values = { differentiated: unknown; loss: number; metrics: Record<string, number> };
/** `computed`: the module's with statistics that it computed itself. */
type Beside = { interpreter: Values; module: Values; computed: Values };

function near(actual: number, expected: number, what: string): void {
  ok(
    Math.abs(actual - expected) <= 1e-12 * Math.max(1, Math.abs(expected)),
    `${what}: ${actual}, not ${expected}`,
  );
}

/** The record is summed in float64 in batch order, whatever the cut: not the module's order. */
function sameValues(module: Values, interpreter: Values): void {
  near(module.loss, interpreter.loss, "loss");
  deepStrictEqual(Object.keys(module.metrics), Object.keys(interpreter.metrics));
  for (const [name, value] of Object.entries(interpreter.metrics)) {
    near(module.metrics[name]!, value, name);
  }
}

const TABLE: AnyAlgorithm[] = Object.values(ALGORITHMS);

for (const algorithm of [...TABLE, ...Object.values(PRINTED_ALGORITHMS)]) {
  for (const example of [{}, ...(algorithm.examples ?? [])]) {
    for (const [part, expression] of Object.entries(traceAlgorithm(algorithm, example))) {
      const title = `${algorithm.name} ${JSON.stringify(example)} ${part}`;
      Deno.test(`torchModule() of ${title} runs alone and has the interpreter's bits`, async () => {
        const pairs = expression.nodes.some(({ kind }) => kind === "pair");
        const coef = expression.inputs.flatMap((
          name,
        ) => (name.startsWith("coef.") ? [name.slice(5)] : []));
        const source = torchModule(expression, { title });
        const cases = [1, 3].map((seed) => ({
          expression,
          source,
          step: randomStep(seed, { pairs, empty: seed === 3, coef }),
        }));
        for (
          const { interpreter, module, computed } of await INTERPRETER.ask(
            "printed",
            cases,
          ) as Beside[]
        ) {
          // A test loss may add a term without gradient, which the interpreter does not
          // differentiate.
          if (TABLE.includes(algorithm)) {
            deepStrictEqual(module.differentiated, interpreter.differentiated);
          }
          sameValues(module, interpreter);
          sameValues(computed, interpreter);
        }
      });
    }
  }
}
