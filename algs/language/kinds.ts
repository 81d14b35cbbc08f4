import type { Kind } from "../../data/mod.ts";

/**
 * Kinds that combine with `K`: coarser kinds broadcast to finer ones; a pair combines only with
 * pairs and numbers.
 * @internal
 */
export type Meets<K extends Kind> = {
  token: "token" | "sequence" | "step";
  sequence: "token" | "sequence" | "step";
  pair: "pair" | "step";
  step: Kind;
}[K];

/**
 * The finer of two kinds.
 * @internal
 */
export type Join<A extends Kind, B extends Kind> = A extends "step" ? B
  : B extends "step" ? A
  : A extends "token" ? "token"
  : B extends "token" ? "token"
  : A;

const FINENESS: Record<Kind, number> = { step: 0, sequence: 1, pair: 1, token: 2 };

/**
 * The kind of an operation on these kinds, or null if they cannot be combined. The types enforce
 * the same at compile time.
 */
export function joinKinds(kinds: readonly Kind[]): Kind | null {
  const apart = new Set(kinds.filter((kind) => kind !== "step"));
  if (apart.has("pair") && apart.size > 1) return null;
  return kinds.reduce(
    (finest, kind) => (FINENESS[kind] > FINENESS[finest] ? kind : finest),
    "step",
  );
}
