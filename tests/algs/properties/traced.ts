import { type Expression, type ExpressionNode, operands } from "../../../data/mod.ts";
import {
  type AnyAlgorithm,
  evaluate,
  type EvaluatedStep,
  type Evaluation,
  layoutOf,
  traceAlgorithm,
} from "../../../algs/mod.ts";
import { runTorch } from "../drivers/torch.ts";
import type {
  AlgorithmUnderTest,
  Corner,
  Held,
  LossUnderTest,
  Probe,
  Variant,
} from "./asked_of.ts";

/**
 * An algorithm of the table under test: the reference evaluator gives its values, the worker's
 * interpreter its gradients.
 */
export function traced(algorithm: AnyAlgorithm): AlgorithmUnderTest {
  const vary = (settings: Record<string, unknown>) => variantOf(algorithm, settings);
  return {
    name: algorithm.name,
    group_min: algorithm.group_min ?? 1,
    variants: [{}, ...(algorithm.examples ?? [])].map(vary),
    vary,
  };
}

function variantOf(algorithm: AnyAlgorithm, settings: Record<string, unknown>): Variant {
  const { loss, value_loss } = traceAlgorithm(algorithm, settings);
  const title = `${algorithm.name} ${JSON.stringify(settings)}`;
  const parsed = algorithm.config.parse(settings);
  const { credit } = algorithm;
  return {
    title,
    settings: parsed,
    losses: [
      tracedLoss(title, loss),
      ...(value_loss ? [tracedLoss(`${title} value_loss`, value_loss)] : []),
    ],
    ...(credit
      ? { credit: (round) => Promise.resolve(credit.assign(round as never, parsed as never)) }
      : {}),
  };
}

/** One expression under test. */
function tracedLoss(title: string, expression: Expression): LossUnderTest {
  return {
    title,
    reads: expression.inputs,
    pairs: expression.nodes.some(({ kind }) => kind === "pair"),
    probe: (steps, held) => {
      const frozen = held && frozenOf(expression, held);
      return Promise.resolve(
        steps.map((step) => probeOf(expression, step, evaluate(expression, step, frozen))),
      );
    },
    differentiate: (cases) => runTorch(cases.map((one) => ({ ...one, expression }))),
  };
}

function frozenOf(expression: Expression, { detached, sides = {} }: Held) {
  const byNode = expression.nodes.flatMap((node, i) => {
    const found = node.op === "where" ? undefined : sides[cornerName(i, node)];
    return found === undefined ? [] : [[i, found] as const];
  });
  return { detached: evaluate(expression, detached), sides: new Map(byNode) };
}

const cornerName = (i: number, { op }: ExpressionNode) => `node ${i} ${op}`;

function probeOf(expression: Expression, step: EvaluatedStep, evaluation: Evaluation): Probe {
  const { loss, metrics } = evaluation;
  return {
    loss,
    metrics,
    get corners() { // Most probes are only asked for their loss.
      return cornersOf(expression, step, evaluation);
    },
  };
}

function cornersOf(
  expression: Expression,
  step: EvaluatedStep,
  { values: all }: Evaluation,
): Corner[] {
  const layout = layoutOf(step);
  return expression.nodes.flatMap((node, i): Corner[] => {
    const found = sidesOf(node);
    if (found === null) return [];
    const values = operandValues(expression, { i, layout, values: all });
    const distances = found.distances.map((distance) => values.map(distance));
    return [{
      name: cornerName(i, node),
      branches: found.branches,
      sides: values.map(found.side),
      distances,
    }];
  });
}

type Operands = readonly number[];
type Sides = {
  branches: number[];
  side: (values: Operands) => number;
  distances: ((values: Operands) => number)[];
};

/** The sides of an operation; null: it has none. */
function sidesOf(node: ExpressionNode): Sides | null {
  switch (node.op) {
    case "clamp": {
      const { lo, hi } = node;
      return {
        branches: [...(lo === null ? [] : [-1]), 0, ...(hi === null ? [] : [1])],
        side: ([x]) => (lo !== null && x! < lo ? -1 : hi !== null && x! > hi ? 1 : 0),
        distances: [lo, hi].flatMap((
          bound,
        ) => (bound === null ? [] : [([x]: Operands) => x! - bound])),
      };
    }
    case "minimum":
    case "maximum":
    case "lt":
    case "le": {
      const distance = ([a, b]: Operands) => a! - b!;
      return {
        branches: [-1, 1],
        side: (values) => Math.sign(distance(values)),
        distances: [distance],
      };
    }
    case "where":
      return {
        branches: [-1, 1],
        side: ([condition]) => (condition !== 0 ? 1 : -1),
        distances: [],
      };
    default:
      return null;
  }
}

type At = { i: number; layout: ReturnType<typeof layoutOf>; values: readonly Float64Array[] };

/** The operands of node `i` for each of its values. */
function operandValues(expression: Expression, { i, layout, values }: At): number[][] {
  const node = expression.nodes[i]!;
  const columns = operands(node).map((arg) => {
    const { kind } = expression.nodes[arg]!;
    const column = values[arg]!;
    if (kind === node.kind) return (at: number) => column[at]!;
    return kind === "step" ? () => column[0]! : (at: number) => column[layout.owner[at]!]!;
  });
  return Array.from(values[i]!, (_, at) => columns.map((column) => column(at)));
}
