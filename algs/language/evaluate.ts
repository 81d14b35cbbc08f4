import { type Expression, type ExpressionNode, type Kind, operands } from "../../data/mod.ts";

/** One sequence of T positions. Chosen and rejected sequences of a pair follow each other. */
export type EvaluatedSequence = {
  group: number;
  mask: readonly number[]; // [T]
  /**
   * Token inputs [T], live ones too; sequence inputs one number; `margin` on the chosen sequence,
   * else 0.
   */
  inputs: Readonly<Record<string, number | readonly number[]>>;
};

/** A whole optimizer step, ragged. */
export type EvaluatedStep = {
  sequences: readonly EvaluatedSequence[];
  coef?: Readonly<Record<string, number>>;
};

/** Values of every node: token [n] over unmasked tokens, sequence [S], pair [P], step [1]. */
export type Evaluation = { loss: number; metrics: Record<string, number>; values: Float64Array[] };

/**
 * What is fixed while inputs vary, so that differences of the loss match what is differentiated.
 */
export type Frozen = {
  /** Each `detach` keeps its value from this evaluation. */
  detached: Evaluation;
  /**
   * Per node, per value: the side that it is held to. clamp: -1 its lower bound, 1 its upper bound,
   * 0 within. minimum, maximum, lt, le: the sign of the first minus the second; 0 is torch's tie,
   * half of each.
   */
  sides?: ReadonlyMap<number, readonly number[]>;
};

/**
 * The reference: computes an expression in float64, the whole step at once, without micro-batches
 * or masks (masked tokens are left out).
 */
export function evaluate(expression: Expression, step: EvaluatedStep, frozen?: Frozen): Evaluation {
  const layout = layoutOf(step);
  const values: Float64Array[] = [];
  for (const [i, node] of expression.nodes.entries()) {
    const sides = frozen?.sides?.get(i);
    values.push(
      node.op === "detach" && frozen
        ? frozen.detached.values[i]!
        : compute(node, { step, layout, values, expression, sides }),
    );
  }
  const metrics = Object.entries(expression.metrics).map((
    [name, root],
  ) => [name, values[root]![0]!]);
  return { loss: values[expression.loss]![0]!, metrics: Object.fromEntries(metrics), values };
}

/**
 * Where the unmasked tokens are: owner [n] is each token's sequence, position [n] its index there.
 */
type Layout = {
  owner: Int32Array;
  position: Int32Array;
  length: Float64Array;
  size: Record<Kind, number>;
};

/** The order of a step's values in `evaluate`. */
export function layoutOf({ sequences }: EvaluatedStep): Layout {
  const owner: number[] = [];
  const position: number[] = [];
  for (const [s, { mask }] of sequences.entries()) {
    for (const [t, bit] of mask.entries()) if (bit) owner.push(s) && position.push(t);
  }
  const length = new Float64Array(sequences.length);
  for (const s of owner) length[s]!++;
  return {
    owner: Int32Array.from(owner),
    position: Int32Array.from(position),
    length,
    size: {
      token: owner.length,
      sequence: sequences.length,
      pair: Math.floor(sequences.length / 2),
      step: 1,
    },
  };
}

type Scope = {
  step: EvaluatedStep;
  layout: Layout;
  values: readonly Float64Array[];
  expression: Expression;
  sides?: readonly number[];
};

const logSigmoid = (x: number) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x)));

const ELEMENTWISE: Record<string, (...x: number[]) => number> = {
  add: (a, b) => a! + b!,
  sub: (a, b) => a! - b!,
  mul: (a, b) => a! * b!,
  div: (a, b) => a! / b!,
  minimum: (a, b) => Math.min(a!, b!),
  maximum: (a, b) => Math.max(a!, b!),
  lt: (a, b) => (a! < b! ? 1 : 0),
  le: (a, b) => (a! <= b! ? 1 : 0),
  where: (condition, a, b) => (condition !== 0 ? a! : b!),
  neg: (x) => -x!,
  exp: (x) => Math.exp(x!),
  log: (x) => Math.log(x!),
  square: (x) => x! * x!,
  sigmoid: (x) => Math.exp(logSigmoid(x!)),
  logSigmoid: (x) => logSigmoid(x!),
  detach: (x) => x!,
};

/** An operation restricted to one of its sides, where it is smooth. */
const HELD: Record<string, (side: number) => (a: number, b: number) => number> = {
  minimum: (side) => (a, b) => (side < 0 ? a : side > 0 ? b : (a + b) / 2),
  maximum: (side) => (a, b) => (side < 0 ? b : side > 0 ? a : (a + b) / 2),
  lt: (side) => () => (side < 0 ? 1 : 0),
  le: (side) => () => (side <= 0 ? 1 : 0),
};

function compute(node: ExpressionNode, scope: Scope): Float64Array {
  const { layout, values, expression, sides } = scope;
  switch (node.op) {
    case "input":
      return readInput(node.name, node.kind, scope);
    case "scalar":
      return Float64Array.of(node.value);
    case "perSequenceSum":
    case "perSequenceMean": {
      const sums = new Float64Array(layout.size.sequence);
      values[node.args[0]]!.forEach((x, i) => sums[layout.owner[i]!]! += x);
      return node.op === "perSequenceSum"
        ? sums
        : sums.map((sum, s) => sum / Math.max(layout.length[s]!, 1));
    }
    case "chosen":
    case "rejected": {
      const from = node.op === "chosen" ? 0 : 1;
      return new Float64Array(layout.size.pair).map((_, p) => values[node.args[0]]![2 * p + from]!);
    }
    case "stepSum":
      return Float64Array.of(
        stepSum(values[node.args[0]]!, expression.nodes[node.args[0]]!.kind, layout),
      );
    default: {
      const work = elementwise(node);
      const held = sides && heldTo(node, sides);
      const at = operands(node).map((arg) =>
        reader(values[arg]!, expression.nodes[arg]!.kind, { node, layout })
      );
      return new Float64Array(layout.size[node.kind]).map((_, i) =>
        (held?.(i) ?? work)(...at.map((read) => read(i)))
      );
    }
  }
}

type Work = (...x: number[]) => number;

function elementwise(node: ExpressionNode): Work {
  if (node.op !== "clamp") return ELEMENTWISE[node.op]!;
  const { lo, hi } = node;
  return (x) => Math.min(Math.max(x!, lo ?? -Infinity), hi ?? Infinity);
}

/** The operation of each value, restricted to its side. */
function heldTo(node: ExpressionNode, sides: readonly number[]): (i: number) => Work {
  if (node.op !== "clamp") return (i) => HELD[node.op]!(sides[i]!) as Work;
  const { lo, hi } = node;
  return (i) => (x) => (sides[i]! < 0 ? lo! : sides[i]! > 0 ? hi! : x!);
}

/** Reads an operand at an index of the node's own kind: coarser kinds broadcast. */
function reader(
  value: Float64Array,
  kind: Kind,
  { node, layout }: { node: ExpressionNode; layout: Layout },
) {
  if (kind === node.kind) return (i: number) => value[i]!;
  return kind === "step" ? () => value[0]! : (i: number) => value[layout.owner[i]!]!;
}

/** Sequences without a token, and pairs with such a sequence, count nowhere. */
function stepSum(value: Float64Array, kind: Kind, { length }: Layout): number {
  const counts = (i: number) => {
    if (kind === "sequence") return length[i]! > 0;
    return kind !== "pair" || (length[2 * i]! > 0 && length[2 * i + 1]! > 0);
  };
  return value.reduce((sum, x, i) => (counts(i) ? sum + x : sum), 0);
}

function readInput(name: string, kind: Kind, { step, layout }: Scope): Float64Array {
  const { sequences, coef } = step;
  if (kind === "step") {
    return Float64Array.of(
      name.startsWith("coef.") ? provided(coef?.[name.slice(5)], name) : count(name, step, layout),
    );
  }
  if (name === "length") return layout.length;
  if (name === "group_length") {
    const same = ({ group }: EvaluatedSequence) =>
      sequences.flatMap((other, s) => (other.group === group ? [s] : []));
    return Float64Array.from(
      sequences,
      (one) => same(one).reduce((sum, s) => sum + layout.length[s]!, 0),
    );
  }
  if (kind === "pair") {
    return new Float64Array(layout.size.pair).map((_, p) =>
      Number(sequences[2 * p]!.inputs[name] ?? 0)
    );
  }
  if (kind === "sequence") {
    return Float64Array.from(sequences, ({ inputs }) => Number(provided(inputs[name], name)));
  }
  return new Float64Array(layout.size.token).map((_, i) => {
    const column = provided(sequences[layout.owner[i]!]!.inputs[name], name);
    return typeof column === "number" ? column : column[layout.position[i]!]!;
  });
}

function provided<T>(value: T | undefined, name: string): T {
  if (value === undefined) {
    throw new RangeError(
      `Cannot evaluate the loss because it reads '${name}', which the step lacks`,
    );
  }
  return value;
}

function count(name: string, step: EvaluatedStep, { length, size }: Layout): number {
  const full = step.sequences.filter((_, s) => length[s]! > 0);
  if (name === "n_tokens") return size.token;
  if (name === "n_sequences") return full.length;
  if (name === "n_groups") return new Set(full.map(({ group }) => group)).size;
  return Array.from({ length: size.pair }, (_, p) => Math.min(length[2 * p]!, length[2 * p + 1]!))
    .filter(Boolean)
    .length;
}
