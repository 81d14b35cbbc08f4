import { z } from "zod";

const /** @internal */ kindSchema = z.enum(["token", "sequence", "pair", "step"]);
/**
 * What a value ranges over: token [B, T], sequence [B], pair [P], or one number per optimizer step.
 */
export type Kind = z.infer<typeof kindSchema>;
/** Schema of {@linkcode Kind}. */
export const Kind: typeof kindSchema = kindSchema;

/**
 * Operations of one operand. `perSequenceMean` divides by max(length, 1); `stepSum` runs over all
 * ranks and micro-batches.
 */
export const UNARY = [
  "neg",
  "exp",
  "log",
  "square",
  "sigmoid",
  "logSigmoid",
  "detach",
  "perSequenceSum",
  "perSequenceMean",
  "chosen",
  "rejected",
  "stepSum",
] as const;
/**
 * Operations of two operands; a coarser kind broadcasts into a finer one. `lt` and `le` return 1 or
 * 0.
 */
export const BINARY = ["add", "sub", "mul", "div", "minimum", "maximum", "lt", "le"] as const;

const kind = Kind.describe("Kind of the value.");
const place = z.int().nonnegative().describe("Index of an earlier node.");

/** One node. `args` name earlier nodes, so the list can be computed in order. */
export const ExpressionNode = z.discriminatedUnion("op", [
  z.strictObject({
    op: z.literal("input"),
    kind,
    name: z.string().describe("An input; `coef.NAME` for coefficients."),
  }),
  z.strictObject({ op: z.literal("scalar"), kind: z.literal("step"), value: z.number() }),
  z.strictObject({ op: z.enum(UNARY), kind, args: z.tuple([place]) }),
  z.strictObject({ op: z.enum(BINARY), kind, args: z.tuple([place, place]) }),
  z.strictObject({
    op: z.literal("clamp"),
    kind,
    args: z.tuple([place]),
    lo: z.number().nullable().describe("null: no lower bound."),
    hi: z.number().nullable().describe("null: no upper bound."),
  }),
  z.strictObject({ op: z.literal("where"), kind, args: z.tuple([place, place, place]) }),
]);
export type ExpressionNode = z.infer<typeof ExpressionNode>;

const /** @internal */ expressionSchema = z.strictObject({
  version: z.literal(1),
  inputs: z.array(z.string()).describe("Exactly the inputs that the nodes read, sorted."),
  nodes: z.array(ExpressionNode).min(1),
  loss: place,
  metrics: z.record(z.string(), place),
}).check(({ value, issues }) => {
  for (const [path, message] of faults(value)) {
    issues.push({ code: "custom", input: value, path, message });
  }
});
/**
 * A loss as plain JSON: the canonical list of its nodes; a shared part appears once. The trainer
 * differentiates it, the reference evaluator computes it, the run records it.
 */
export type Expression = z.infer<typeof expressionSchema>;
/** Schema of {@linkcode Expression}. */
export const Expression: typeof expressionSchema = expressionSchema;

/** Operands of a node, as indices of earlier nodes. */
export function operands(node: ExpressionNode): readonly number[] {
  return "args" in node ? node.args : [];
}

type Parts = {
  inputs: string[];
  nodes: ExpressionNode[];
  loss: number;
  metrics: Record<string, number>;
};

function* faults(
  { inputs, nodes, loss, metrics }: Parts,
): Generator<[(string | number)[], string]> {
  for (const [i, node] of nodes.entries()) {
    const late = operands(node).find((arg) => arg >= i);
    if (late !== undefined) {
      yield [["nodes", i, "args"], `node ${i} reads node ${late}, which is not an earlier one`];
    }
  }
  const roots: [string[], number][] = [
    [["loss"], loss],
    ...Object.entries(metrics).map(([name, root]): [string[], number] => [["metrics", name], root]),
  ];
  for (const [path, root] of roots) {
    const found = nodes[root]?.kind ?? "missing";
    if (found !== "step") {
      yield [path, `node ${root} must be one number per step: current kind is ${found}`];
    }
  }
  const read = [...new Set(nodes.flatMap((node) => node.op === "input" ? [node.name] : []))].sort();
  if (read.join() !== inputs.join()) {
    yield [["inputs"], `must be exactly what the nodes read: ${read.join(", ")}`];
  }
}
