import type { BINARY, Kind, UNARY } from "../../data/mod.ts";
import { LossError } from "./errors.ts";
import { type Join, joinKinds, type Meets } from "./kinds.ts";

/**
 * What a node computes, apart from its operands.
 * @internal
 */
export type Operation =
  | { op: "input"; name: string }
  | { op: "scalar"; value: number }
  | { op: (typeof UNARY)[number] | (typeof BINARY)[number] | "where" }
  | { op: "clamp"; lo: number | null; hi: number | null };

/**
 * A value of a loss while it is traced: not a number, but the operation that will compute it. `K`
 * is its kind. Operations are named as in torch and have torch's ties and edges.
 */
export class Expr<K extends Kind = Kind> {
  /** A node of the loss. Operations create it; an algorithm never does. */
  constructor(
    readonly kind: K,
    readonly operation: Operation,
    readonly operands: readonly Expr[] = [],
  ) {}

  /** The sum. */
  add<O extends Meets<K> = "step">(other: Expr<O> | number): Expr<Join<K, O>> {
    return binary("add", this, other);
  }

  /** The difference. */
  sub<O extends Meets<K> = "step">(other: Expr<O> | number): Expr<Join<K, O>> {
    return binary("sub", this, other);
  }

  /** The product. */
  mul<O extends Meets<K> = "step">(other: Expr<O> | number): Expr<Join<K, O>> {
    return binary("mul", this, other);
  }

  /** The quotient; by 0 it is infinite or not a number. */
  div<O extends Meets<K> = "step">(other: Expr<O> | number): Expr<Join<K, O>> {
    return binary("div", this, other);
  }

  /** The smaller one; a tie splits the gradient. */
  minimum<O extends Meets<K> = "step">(other: Expr<O> | number): Expr<Join<K, O>> {
    return binary("minimum", this, other);
  }

  /** The larger one; a tie splits the gradient. */
  maximum<O extends Meets<K> = "step">(other: Expr<O> | number): Expr<Join<K, O>> {
    return binary("maximum", this, other);
  }

  /** 1 where this is less than the other, else 0. No gradient. */
  lt<O extends Meets<K> = "step">(other: Expr<O> | number): Expr<Join<K, O>> {
    return binary("lt", this, other);
  }

  /** 1 where this is at most the other, else 0. No gradient. */
  le<O extends Meets<K> = "step">(other: Expr<O> | number): Expr<Join<K, O>> {
    return binary("le", this, other);
  }

  /**
   * Kept within [lo, hi], gradient 0 outside, passing at the bounds themselves. An infinite bound
   * has no effect.
   */
  clamp(lo: number, hi: number): Expr<K> {
    if (!(lo <= hi)) {
      throw new LossError(
        0,
        `Cannot clamp to [lo, hi] because lo must be at most hi: current bounds are [${lo}, ${hi}]`,
      );
    }
    const bound = (value: number) => (Number.isFinite(value) ? value : null);
    return new Expr(this.kind, { op: "clamp", lo: bound(lo), hi: bound(hi) }, [this]);
  }

  /** The value with the other sign. */
  neg(): Expr<K> {
    return unary("neg", this);
  }

  /** e to this power. */
  exp(): Expr<K> {
    return unary("exp", this);
  }

  /** The natural logarithm; of a negative value it is not a number. */
  log(): Expr<K> {
    return unary("log", this);
  }

  /** The value times itself. */
  square(): Expr<K> {
    return unary("square", this);
  }

  /** 1 ÷ (1 + e^-x). */
  sigmoid(): Expr<K> {
    return unary("sigmoid", this);
  }

  /** The logarithm of `sigmoid`, exact where that would round to 0. */
  logSigmoid(): Expr<K> {
    return unary("logSigmoid", this);
  }

  /** The same value without gradient. */
  detach(): Expr<K> {
    return unary("detach", this);
  }

  /** An expression has no value while it is traced, so `if (ratio > 1)` would silently be wrong. */
  [Symbol.toPrimitive](): never {
    throw coerced();
  }

  /** Throws, like every use as text. */
  toString(): never {
    throw coerced();
  }

  /** Throws, like every use as JSON. */
  toJSON(): never {
    throw coerced();
  }
}

function coerced(): LossError {
  return new LossError(
    0,
    "Cannot use an expression as a number, text or condition, because it has no value while " +
      "the loss is traced: " +
      "use its methods, and where(condition, a, b) for a choice per element",
  );
}

function unary<K extends Kind>(op: (typeof UNARY)[number], operand: Expr<K>): Expr<K> {
  return new Expr(operand.kind, { op }, [operand as unknown as Expr]);
}

function binary<K extends Kind, O extends Kind>(
  op: (typeof BINARY)[number],
  left: Expr<K>,
  right: Expr<O> | number,
): Expr<Join<K, O>> {
  return elementwise({ op }, [left as unknown as Expr, right as unknown as Expr | number]);
}

/** An elementwise operation on operands of compatible kinds; numbers become step values. */
export function elementwise<K extends Kind>(
  operation: Operation,
  operands: readonly (Expr | number)[],
): Expr<K> {
  const values = operands.map((
    operand,
  ) => (typeof operand === "number" ? number(operand) : operand));
  const kinds = values.map(({ kind }) => kind);
  const kind = joinKinds(kinds);
  if (kind === null) {
    throw new LossError(
      0,
      `Cannot compute ${operation.op} of a ${
        kinds.join(" and a ")
      }: a pair meets only pairs and step values`,
    );
  }
  return new Expr(kind, operation, values) as unknown as Expr<K>;
}

/** A number as a step value. */
export function number(value: number): Expr<"step"> {
  if (!Number.isFinite(value)) {
    throw new LossError(
      0,
      `Cannot use a number that is not finite in a loss: current value is ${value}`,
    );
  }
  return new Expr("step", { op: "scalar", value });
}
