/** The nodes of a graph and the typed references between them. */
import type { ItemId } from "./keys.ts";
import type { Stage } from "./stage.ts";

/**
 * Where a reference points. `node` counts from 0 in order of building, over the whole graph.
 * @internal
 */
export type RefSource =
  | { from: "node"; node: number }
  | { from: "loop"; node: number; carried: string }
  | { from: "carried"; loop: number; name: string; lag: number }
  | { from: "index"; loop: number }
  | { from: "constant"; value: unknown };

declare const holds: unique symbol;

/**
 * The future value of a node. T exists only for the compiler: wiring a wrong type does not compile.
 */
export class Ref<T> {
  /** Never set: carries the type. */
  declare readonly [holds]: T;
  /**
   * Where the value comes from, and which field of it is meant. Graphs create references; scripts
   * only pass them on.
   */
  constructor(readonly source: RefSource, readonly path: readonly string[] = []) {}

  /** One field of an object value. */
  field<K extends keyof T & string>(name: K): Ref<T[K]> {
    return new Ref<T[K]>(this.source, [...this.path, name]);
  }
}

type Primitive = string | number | boolean | bigint | null | undefined;

/**
 * What may be wired where a T is needed: a reference, a literal, or an object or list with
 * references inside.
 */
export type Wiring<T> = Ref<T> | Literal<T>;
/** @internal */
type Literal<T> = T extends Primitive ? T
  : T extends readonly (infer U)[] ? readonly Wiring<U>[]
  : T extends object ? { [K in keyof T]: Wiring<T[K]> }
  : T;

/** @internal */
export type StageNode = { kind: "stage"; id: number; name: string; stage: Stage; wiring: unknown };
/** @internal */
export type MapNode = {
  kind: "map";
  id: number;
  name: string;
  stage: Stage;
  list: Ref<unknown>;
  wiring: Record<string, unknown>;
  item_id?: ItemId;
};
/** @internal */
export type FlatNode = { kind: "flat"; id: number; name: string; list: Ref<unknown> };
/** @internal */
export type WhenNode = {
  kind: "when";
  id: number;
  name: string;
  flag: Ref<boolean>;
  then: Scope;
  otherwise: Scope;
};
/** @internal */
export type LoopNode = {
  kind: "loop";
  id: number;
  name: string;
  times: number;
  lag: number;
  carry: Record<string, Ref<unknown>>;
  until?: string;
  audit?: Audit<Record<string, unknown>>;
  body: Scope;
};
/** A node of a graph: a stage, a map over items, a flattened list, a branch or a loop. */
export type GraphNode = StageNode | MapNode | FlatNode | WhenNode | LoopNode;

/** A list of nodes and their joint output. */
export type Scope = { nodes: GraphNode[]; output: unknown };

/**
 * Checks a closing round. A returned string fails the run with code `audit`. `tally`: totals of all
 * rounds so far. Not async, because its answer is part of the append that closes the round.
 */
export type Audit<C> = (round: {
  tally: Record<string, number>;
  carried: C;
  round: number;
}) => string | null;

/** How often a stage runs in a graph, as far as is known before the run. */
export type StageCount = { stage: string; runs_on: string; times: number; per_item: boolean };

/**
 * A built graph: a value that can be drawn, counted, hashed and executed. T is what a run of it
 * returns.
 */
export type Graph<T = unknown> = {
  readonly name: string;
  /** What it was built from, defaults filled in. */
  readonly config: unknown;
  readonly nodes: readonly GraphNode[];
  readonly output: unknown;
  /** sha256 of names, versions and edges. */
  readonly hash: string;
  /**
   * One line per node with its edges: the input of the hash, and the form in which differences are
   * shown.
   */
  readonly lines: readonly string[];
  draw(format?: "text" | "mermaid"): string;
  count(): StageCount[];
  readonly result?: T;
};
