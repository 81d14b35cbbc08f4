import { deepStrictEqual } from "node:assert/strict";
import { Expression, operands } from "../../data/expression.ts";

const nodes = [
  { op: "input" as const, kind: "token" as const, name: "logp" },
  { op: "stepSum" as const, kind: "step" as const, args: [0] as [number] },
];
const whole = { version: 1 as const, inputs: ["logp"], nodes, loss: 1, metrics: {} };
const problems = (changes: object) =>
  Expression.safeParse({ ...whole, ...changes }).error?.issues.map(({ path, message }) =>
    `${path.join(".")}: ${message}`
  ) ?? [];

Deno.test("Expression takes nodes that read earlier ones", () => {
  deepStrictEqual(Expression.parse(whole), whole);
  deepStrictEqual(nodes.map(operands), [[], [0]]);
});

Deno.test("Expression refuses a node that reads itself or a later one", () => {
  for (const arg of [1, 2]) {
    deepStrictEqual(problems({ nodes: [nodes[0], { ...nodes[1], args: [arg] }] }), [
      `nodes.1.args: node 1 reads node ${arg}, which is not an earlier one`,
    ]);
  }
});

Deno.test("Expression refuses a loss or a metric that is not one number per step", () => {
  deepStrictEqual(problems({ loss: 0, metrics: { "policy/kl": 7 } }), [
    "loss: node 0 must be one number per step: current kind is token",
    "metrics.policy/kl: node 7 must be one number per step: current kind is missing",
  ]);
});

Deno.test("Expression's inputs are exactly what its nodes read", () => {
  for (const inputs of [[], ["logp", "ref_logp"]]) {
    deepStrictEqual(problems({ inputs }), ["inputs: must be exactly what the nodes read: logp"]);
  }
});
