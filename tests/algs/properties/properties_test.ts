/** The properties of every algorithm of the table, and of losses that only the tests know. */
import { deepStrictEqual } from "node:assert/strict";
import { BINARY, UNARY } from "../../../data/mod.ts";
import { ALGORITHMS, type AnyAlgorithm, INPUTS, traceAlgorithm } from "../../../algs/mod.ts";
import { MET_EXACTLY, testLoss, testProperties } from "./properties.ts";
import { TEST_ALGORITHMS } from "./test_losses.ts";
import { traced } from "./traced.ts";

const TABLE: AnyAlgorithm[] = Object.values(ALGORITHMS);
const ALL = [...TABLE, ...Object.values(TEST_ALGORITHMS)];

for (const algorithm of TABLE) testProperties(traced(algorithm));
for (const algorithm of Object.values(TEST_ALGORITHMS)) {
  traced(algorithm).variants.flatMap(({ losses }) => losses).forEach(testLoss);
}

const EXPRESSIONS = ALL.flatMap((algorithm) =>
  [{}, ...(algorithm.examples ?? [])].flatMap((example) =>
    Object.values(traceAlgorithm(algorithm, example))
  )
);

Deno.test("the losses under test read every input of the language", () => {
  const read = new Set(
    EXPRESSIONS.flatMap(({ inputs }) => inputs.filter((name) => !name.startsWith("coef."))),
  );
  deepStrictEqual([...read].sort(), Object.keys(INPUTS).sort());
});

Deno.test("the losses under test use every operation of the language", () => {
  const used = new Set<string>(EXPRESSIONS.flatMap(({ nodes }) => nodes.map(({ op }) => op)));
  deepStrictEqual(
    [...UNARY, ...BINARY, "clamp", "where", "scalar", "input"].filter((op) => !used.has(op)),
    [],
  );
});

Deno.test("corners of every operation that passes a gradient were met exactly", () => {
  const lacking = ["clamp", "minimum", "maximum"].filter((operation) =>
    !MET_EXACTLY.has(operation)
  );
  deepStrictEqual(lacking, [], JSON.stringify([...MET_EXACTLY]));
});
