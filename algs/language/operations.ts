import type { Kind } from "../../data/mod.ts";
import { LossError } from "./errors.ts";
import { elementwise, Expr, number, type Operation } from "./expr.ts";
import type { InputName } from "./inputs.ts";
import { INPUTS } from "./inputs.ts";
import type { Join, Meets } from "./kinds.ts";

/** Kinds that can be summed over the step. */
export type Many = "token" | "sequence" | "pair";

/** A number as an expression. */
export function scalar(value: number): Expr<"step"> {
  return number(value);
}

/** `a` where the condition is not 0, else `b`. No gradient flows to the condition. */
export function where<
  C extends Kind,
  A extends Meets<C> = "step",
  B extends Meets<Join<C, A>> = "step",
>(
  condition: Expr<C>,
  a: Expr<A> | number,
  b: Expr<B> | number,
): Expr<Join<Join<C, A>, B>> {
  return elementwise({ op: "where" }, [condition, a, b] as unknown as (Expr | number)[]);
}

/** [B, T] -> [B]: sum over the unmasked tokens. */
export function perSequenceSum(x: Expr<"token">): Expr<"sequence"> {
  return reduce("perSequenceSum", x, { from: ["token"], to: "sequence" });
}

/** [B, T] -> [B]: sum over the unmasked tokens ÷ max(length, 1). */
export function perSequenceMean(x: Expr<"token">): Expr<"sequence"> {
  return reduce("perSequenceMean", x, { from: ["token"], to: "sequence" });
}

/** [B] -> [P]: the preferred sequence of each pair. */
export function chosen(x: Expr<"sequence">): Expr<"pair"> {
  return reduce("chosen", x, { from: ["sequence"], to: "pair" });
}

/** [B] -> [P]: the other sequence of each pair. */
export function rejected(x: Expr<"sequence">): Expr<"pair"> {
  return reduce("rejected", x, { from: ["sequence"], to: "pair" });
}

/**
 * Sum over all unmasked tokens (sequences, pairs) of the optimizer step: all ranks, all
 * micro-batches.
 */
export function stepSum<K extends Many>(x: Expr<K>): Expr<"step"> {
  return reduce("stepSum", x, { from: ["token", "sequence", "pair"], to: "step" });
}

/** `stepSum` ÷ the step's unmasked tokens. */
export function tokenMean<K extends Many>(x: Expr<K>): Expr<"step"> {
  return stepSum(x).div(input("n_tokens"));
}

/**
 * `stepSum` ÷ the step's sequences. The mean of sequence means is
 * `sequenceMean(perSequenceMean(x))`.
 */
export function sequenceMean<K extends Many>(x: Expr<K>): Expr<"step"> {
  return stepSum(x).div(input("n_sequences"));
}

/** `stepSum` ÷ the step's groups. */
export function groupMean<K extends Many>(x: Expr<K>): Expr<"step"> {
  return stepSum(x).div(input("n_groups"));
}

/** `stepSum` ÷ the step's pairs. */
export function pairMean<K extends Many>(x: Expr<K>): Expr<"step"> {
  return stepSum(x).div(input("n_pairs"));
}

/** An input by name. Losses get them as their first argument. */
export function input<N extends InputName>(name: N): Expr<(typeof INPUTS)[N]["kind"]> {
  return new Expr(INPUTS[name].kind, { op: "input", name });
}

/** A coefficient that changes during a run. */
export function coefficient(name: string): Expr<"step"> {
  return new Expr("step", { op: "input", name: `coef.${name}` });
}

function reduce<K extends Kind>(
  op: Operation["op"],
  x: Expr<never> | Expr<Kind> | Expr<Many>,
  { from, to }: { from: readonly Kind[]; to: K },
): Expr<K> {
  const operand = x as unknown as Expr;
  if (!from.includes(operand.kind)) {
    throw new LossError(
      0,
      `Cannot compute ${op} of a ${operand.kind} value: it takes a ${from.join(" or ")} value`,
    );
  }
  return new Expr(to, { op } as Operation, [operand]);
}
