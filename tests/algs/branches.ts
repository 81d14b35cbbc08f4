import { type Expression, type ExpressionNode, type Kind, operands } from "../../data/mod.ts";
import { evaluate, type EvaluatedStep, type Evaluation, INPUTS, layoutOf, liveModel } from "../../algs/mod.ts";
import { withToken } from "./steps.ts";

/** Where an operation of a loss has a corner: the sign of `distance` says on which side of it a value is. */
type Edge = { node: number; name: string; distance: (values: readonly number[]) => number };

/** What a node can do to a value; each must be seen by some case. */
function outcomes(node: ExpressionNode): { name: string; hit: (values: readonly number[]) => boolean }[] {
  switch (node.op) {
    case "clamp": {
      const { lo, hi } = node;
      return [
        ...(lo === null ? [] : [{ name: "below", hit: ([x]: readonly number[]) => x! < lo }]),
        { name: "inside", hit: ([x]) => x! > (lo ?? -Infinity) && x! < (hi ?? Infinity) },
        ...(hi === null ? [] : [{ name: "above", hit: ([x]: readonly number[]) => x! > hi }]),
      ];
    }
    case "minimum":
    case "maximum":
    case "lt":
    case "le":
      return [{ name: "first less", hit: ([a, b]) => a! < b! }, { name: "first more", hit: ([a, b]) => a! > b! }];
    case "where":
      return [{ name: "true", hit: ([c]) => c !== 0 }, { name: "false", hit: ([c]) => c === 0 }];
    default:
      return [];
  }
}

function edgesOf(node: ExpressionNode, i: number): Edge[] {
  if (node.op === "clamp") {
    return ([["lo", node.lo], ["hi", node.hi]] as const).flatMap(([name, bound]) =>
      bound === null ? [] : [{ node: i, name, distance: ([x]: readonly number[]) => x! - bound }]
    );
  }
  return outcomes(node).length > 0 && node.op !== "where"
    ? [{ node: i, name: "tie", distance: ([a, b]) => a! - b! }]
    : [];
}

/** Counts, per branch of an expression, the values that took it. */
export class BranchCount {
  readonly counts = new Map<string, number>();

  constructor(readonly expression: Expression) {
    for (const [i, node] of expression.nodes.entries()) {
      for (const { name } of outcomes(node)) this.counts.set(`node ${i} ${node.op} ${name}`, 0);
    }
  }

  add(step: EvaluatedStep, evaluation: Evaluation): void {
    for (const [i, node] of this.expression.nodes.entries()) {
      for (const { name, hit } of outcomes(node)) {
        const key = `node ${i} ${node.op} ${name}`;
        const values = operandValues(this.expression, { i, step, evaluation });
        this.counts.set(key, this.counts.get(key)! + values.filter(hit).length);
      }
    }
  }

  never(): string[] {
    return [...this.counts].flatMap(([key, count]) => (count === 0 ? [key] : []));
  }
}

type At = { i: number; step: EvaluatedStep; evaluation: Evaluation };

/** The operands of node `i` for each of its values. */
function operandValues(expression: Expression, { i, step, evaluation }: At): number[][] {
  const layout = layoutOf(step);
  const node = expression.nodes[i]!;
  const read = (arg: number, at: number) => {
    const { kind } = expression.nodes[arg]!;
    const index = kind === "step" ? 0 : kind === node.kind ? at : layout.owner[at]!;
    return evaluation.values[arg]![index]!;
  };
  return Array.from(evaluation.values[i]!, (_, at) => operands(node).map((arg) => read(arg, at)));
}

/** Steps like `step` with one value 10 h to either side of every corner of the expression. */
export function edgeSteps(expression: Expression, step: EvaluatedStep, h: number): EvaluatedStep[] {
  return expression.nodes.flatMap((node, i) => edgesOf(node, i)).flatMap((edge) => {
    const found = findEdge(expression, step, edge);
    return found === null ? [] : [found(-10 * h), found(10 * h)];
  });
}

/** Moves one input until a value of the node is at the edge; null if no single input reaches it. */
function findEdge(expression: Expression, step: EvaluatedStep, edge: Edge): ((offset: number) => EvaluatedStep) | null {
  for (const place of placesFor(expression, edge.node, step)) {
    const element = elementAt(expression.nodes[edge.node]!.kind, place, step);
    const side = (x: number) => {
      const moved = withToken(step, place, x);
      const values = operandValues(expression, { i: edge.node, step: moved, evaluation: evaluate(expression, moved) });
      return edge.distance(values[element]!) > 0;
    };
    const x = crossing(side, Number([step.sequences[place.s]!.inputs[place.name]].flat()[place.t]));
    if (x !== null) return (offset) => withToken(step, place, x + offset);
  }
  return null;
}

type Place = { name: string; s: number; t: number };

/** Inputs below a node, live ones first, at the first tokens of every second sequence. */
function placesFor(expression: Expression, root: number, step: EvaluatedStep): Place[] {
  const below = new Set([root]);
  for (let i = root; i >= 0; i--) if (below.has(i)) operands(expression.nodes[i]!).forEach((arg) => below.add(arg));
  const names = [...below].flatMap((i) => {
    const node = expression.nodes[i]!;
    return node.op === "input" && node.name in step.sequences[0]!.inputs ? [node.name] : [];
  });
  const kinds = INPUTS as Record<string, { kind: Kind }>;
  const ordered = names.toSorted((a, b) => Number(liveModel(b) !== null) - Number(liveModel(a) !== null));
  return ordered.flatMap((name) =>
    step.sequences.flatMap(({ mask }, s) => {
      const t = kinds[name]!.kind === "token" ? mask.indexOf(1) : 0;
      return t < 0 ? [] : [{ name, s, t }];
    })
  );
}

function elementAt(kind: Kind, { s, t }: Place, step: EvaluatedStep): number {
  if (kind === "step") return 0;
  if (kind === "sequence") return s;
  if (kind === "pair") return Math.floor(s / 2);
  const { owner, position } = layoutOf(step);
  return owner.findIndex((one, i) => one === s && position[i] === t);
}

const REACH = 24;

/** Where `side` changes nearest to `start`, by bisection. */
function crossing(side: (x: number) => boolean, start: number): number | null {
  const first = side(start);
  for (let distance = 0.5; distance <= REACH; distance += 0.5) {
    for (const sign of [-1, 1]) {
      if (side(start + sign * distance) !== first) {
        return bisect(side, start + sign * (distance - 0.5), start + sign * distance);
      }
    }
  }
  return null;
}

function bisect(side: (x: number) => boolean, from: number, to: number): number {
  const first = side(from);
  let [near, far] = [from, to];
  for (let i = 0; i < 50; i++) {
    const middle = (near + far) / 2;
    if (side(middle) === first) near = middle;
    else far = middle;
  }
  return (near + far) / 2;
}
