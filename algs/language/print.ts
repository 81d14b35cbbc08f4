import { type Expression, type ExpressionNode, operands } from "../../data/mod.ts";
import { liveModel } from "./inputs.ts";

const METHODS = new Set(
  "neg exp log square sigmoid logSigmoid detach add sub mul div minimum maximum lt le clamp".split(
    " ",
  ),
);

/**
 * An expression as text in the syntax of the language: what it reads, each shared part once, then
 * loss and metrics.
 */
export function expressionText(expression: Expression): string {
  const { nodes } = expression;
  const uses = nodes.map(() => 0);
  for (const node of nodes) for (const arg of operands(node)) uses[arg]!++;
  const names = new Map<number, string>();
  const lines = expression.inputs.map((name) => inputLine(name, nodes));
  for (const [i, node] of nodes.entries()) {
    if (uses[i]! < 2 || operands(node).length === 0) continue;
    const text = render(nodes, i, { names });
    names.set(i, `v${names.size + 1}`);
    lines.push(`${names.get(i)} = ${text} // ${node.kind}`);
  }
  lines.push(`loss = ${render(nodes, expression.loss, { names })}`);
  for (const [name, root] of Object.entries(expression.metrics)) {
    lines.push(`metric ${name} = ${render(nodes, root, { names })}`);
  }
  return lines.join("\n") + "\n";
}

/** One node as text for an error: a few levels deep. */
export function nodeText(nodes: readonly ExpressionNode[], i: number): string {
  return render(nodes, i, { names: new Map(), depth: 4 });
}

function inputLine(name: string, nodes: readonly ExpressionNode[]): string {
  const { kind } = nodes.find((node) => node.op === "input" && node.name === name)!;
  return `reads ${name} // ${kind}${liveModel(name) ? ", live" : ""}`;
}

type Options = { names: Map<number, string>; depth?: number };

function render(
  nodes: readonly ExpressionNode[],
  i: number,
  { names, depth = Infinity }: Options,
): string {
  const node = nodes[i]!;
  if (names.has(i)) return names.get(i)!;
  if (node.op === "input") return node.name;
  if (node.op === "scalar") return `scalar(${node.value})`;
  if (depth === 0) return "…";
  const [first, ...rest] = operands(node).map((arg, at) => {
    const operand = nodes[arg]!;
    if (at > 0 && operand.op === "scalar") return String(operand.value);
    return render(nodes, arg, { names, depth: depth - 1 });
  });
  if (node.op === "clamp") return `${first}.clamp(${node.lo ?? -Infinity}, ${node.hi ?? Infinity})`;
  return METHODS.has(node.op)
    ? `${first}.${node.op}(${rest.join(", ")})`
    : `${node.op}(${[first, ...rest].join(", ")})`;
}
