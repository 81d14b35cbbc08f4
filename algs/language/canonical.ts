import type { Expression, ExpressionNode } from "../../data/mod.ts";
import type { Expr } from "./expr.ts";

/**
 * The canonical list of nodes: the loss's operands before it, left to right, then those of the
 * metrics by name. Equal nodes are one node, so the same loss written twice gives the same JSON.
 */
export function canonical(loss: Expr<"step">, metrics: Record<string, Expr<"step">>): Expression {
  const nodes: ExpressionNode[] = [];
  const byContent = new Map<string, number>();
  const byExpr = new Map<Expr, number>();
  const place = (expr: Expr): number => {
    const known = byExpr.get(expr);
    if (known !== undefined) return known;
    const node = nodeOf(expr, expr.operands.map(place));
    const content = JSON.stringify(node);
    const index = byContent.get(content) ?? nodes.push(node) - 1;
    byContent.set(content, index);
    byExpr.set(expr, index);
    return index;
  };
  const root = place(loss as unknown as Expr);
  const names = Object.keys(metrics).sort();
  const measured = Object.fromEntries(
    names.map((name) => [name, place(metrics[name] as unknown as Expr)]),
  );
  const inputs = [...new Set(nodes.flatMap((node) => (node.op === "input" ? [node.name] : [])))]
    .sort();
  return { version: 1, inputs, nodes, loss: root, metrics: measured };
}

function nodeOf({ kind, operation }: Expr, args: number[]): ExpressionNode {
  const { op, ...rest } = operation;
  return { op, kind, ...(args.length > 0 ? { args } : {}), ...rest } as ExpressionNode;
}
