import { type Expression, type ExpressionNode, operands } from "../../data/mod.ts";
import { LossError } from "./errors.ts";
import { liveModel } from "./inputs.ts";
import { nodeText } from "./print.ts";

/**
 * Checks a traced loss. Metrics are free of rules 1 and 2: they have no gradient and are computed
 * afterwards.
 * 1. The loss is linear in its live `stepSum`s, so every micro-batch adds its own share.
 * 2. A live `stepSum` anywhere else is a statistic and must be under `detach()`.
 * 3. One model's live inputs.
 * 4. Loss and metrics are step expressions (the type says so too).
 */
export function checkRules({ nodes, loss, metrics }: Expression): void {
  for (const [name, root] of [["loss", loss] as const, ...Object.entries(metrics)]) {
    const { kind } = nodes[root]!;
    if (kind !== "step") {
      throw new LossError(
        4,
        `Cannot use ${
          nodeText(nodes, root)
        } as ${name}: it must be one number per step, not a ${kind} value`,
      );
    }
  }
  checkOneModel(nodes);
  const flow = gradients(nodes);
  if (!flow[loss]) {
    throw new LossError(1, "Cannot train on this loss: no gradient flows from it to the model");
  }
  new Linearity(nodes, flow).check(loss);
}

function checkOneModel(nodes: readonly ExpressionNode[]): void {
  const live = nodes.flatMap((
    node,
  ) => (node.op === "input" && liveModel(node.name) ? [node.name] : []));
  const other = live.find((name) => liveModel(name) !== liveModel(live[0]!));
  if (other === undefined) return;
  throw new LossError(
    3,
    `Cannot read '${live[0]}' and '${other}' in one expression because two models compute them: ` +
      "a value model has its own, `value_loss`",
  );
}

/** Per node: does gradient flow through it to the model. */
export function gradients(nodes: readonly ExpressionNode[]): boolean[] {
  const flow: boolean[] = [];
  for (const node of nodes) {
    if (node.op === "input") flow.push(liveModel(node.name) !== null);
    else if (node.op === "detach" || node.op === "lt" || node.op === "le") flow.push(false);
    else if (node.op === "where") flow.push(node.args.slice(1).some((arg) => flow[arg]));
    else flow.push(operands(node).some((arg) => flow[arg]));
  }
  return flow;
}

class Linearity {
  /** Per node: a live `stepSum` that is not under `detach()` at or below it, or null. */
  private readonly exposed: (number | null)[] = [];

  constructor(private readonly nodes: readonly ExpressionNode[], flow: readonly boolean[]) {
    for (const [i, node] of nodes.entries()) {
      const inner = operands(node).map((arg) =>
        this.exposed[arg]!
      ).find((found) => found !== null) ?? null;
      if (node.op === "detach") this.exposed.push(null);
      else if (node.op === "stepSum" && flow[node.args[0]]) this.exposed.push(inner ?? i);
      else this.exposed.push(inner);
    }
  }

  check(i: number): void {
    const node = this.nodes[i]!;
    if (this.exposed[i] === null) return;
    switch (node.op) {
      case "stepSum":
        return this.forbid(node.args[0], 2, "inside another sum");
      case "add":
      case "sub":
      case "neg":
        return node.args.forEach((arg) => this.check(arg));
      case "mul": {
        const [a, b] = node.args;
        if (this.exposed[a] !== null && this.exposed[b] !== null) {
          return this.fail(i, a, 1, "multiplied with another");
        }
        this.check(a);
        return this.check(b);
      }
      case "div":
        this.forbid(node.args[1], 1, "in a denominator");
        return this.check(node.args[0]);
      case "where":
        this.forbid(node.args[0], 2, "in a condition");
        return node.args.slice(1).forEach((arg) => this.check(arg));
      default:
        return this.fail(i, i, 1, `under ${node.op}`);
    }
  }

  private forbid(i: number, rule: number, place: string): void {
    if (this.exposed[i] !== null) this.fail(i, i, rule, place);
  }

  private fail(at: number, below: number, rule: number, place: string): never {
    const sum = nodeText(this.nodes, this.exposed[below]!);
    throw new LossError(
      rule,
      `Cannot use ${sum} ${place}, in ${
        nodeText(this.nodes, at)
      }: a micro-batch knows only its share of a live sum. ` +
        "The loss may be linear in it; anything else is a statistic and needs .detach()",
    );
  }
}
