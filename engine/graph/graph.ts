/**
 * Builds graphs. Building runs nothing: the result is a value to draw, count, hash and later
 * execute.
 */
import type { z } from "zod";
import { sha256Hex } from "../canonical.ts";
import { countStages, drawMermaid, drawText, graphLines } from "./draw.ts";
import {
  type Audit,
  type Graph,
  type GraphNode,
  type LoopNode,
  Ref,
  type RefSource,
  type Scope,
  type Wiring,
} from "./types.ts";
import type { ItemId } from "./keys.ts";
import type { Stage } from "./stage.ts";

/** The rest of a mapped stage's input besides `item`; optional if nothing else is required. */
type ExtraWiring<I> = { [K in keyof Omit<I, "item">]: Wiring<Omit<I, "item">[K]> };
type MapOptions<T> = { id?: (item: T) => string | number; as?: string };
/** @internal */
type MapArguments<I, T> = Record<never, never> extends Omit<I, "item">
  ? [wiring?: ExtraWiring<I>, options?: MapOptions<T>]
  : [wiring: ExtraWiring<I>, options?: MapOptions<T>];

/** How often a loop runs, what it carries from round to round, and what may end it. */
export type LoopOptions<C, U extends string> = {
  /** The maximum number of rounds. 0 returns the start values. */
  times: number;
  /** Start values, by name. Round k sees what round k-1 returned under the same name. */
  carry: { [K in keyof C]: Ref<C[K]> };
  /**
   * Rounds that may be open besides the newest, minus one. Raised to the longest `r.carried(name, {
   * lag })`.
   */
  lag?: number;
  /** Name of a boolean that the body returns; read when a round closes, true ends the loop. */
  until?: U;
  audit?: Audit<NoInfer<C>>;
};
/** @internal */
type RoundResult<C, U extends string> =
  & { [K in keyof C]: Wiring<C[K]> }
  & { [K in U]: Wiring<boolean> };

/** Adds nodes to one scope of a graph: the run, the body of a loop, or a branch of a `when`. */
export interface GraphBuilder {
  /**
   * Runs a stage once in this scope. `as` names the node; else the stage's name, `~2` for its
   * second use.
   */
  stage<I, O>(stage: Stage<I, O>, wiring: Wiring<NoInfer<I>>, options?: { as?: string }): Ref<O>;
  /**
   * Runs a stage for every item of a list, each as soon as the item is available. Results keep the
   * list's order.
   */
  map<I extends { item: unknown }, O>(
    stage: Stage<I, O>,
    list: Ref<readonly NoInfer<I>["item"][]>,
    ...rest: MapArguments<NoInfer<I>, NoInfer<I>["item"]>
  ): Ref<O[]>;
  /** Joins lists in order; items pass through as soon as their list is available. */
  flat<T>(list: Ref<readonly (readonly T[])[]>): Ref<T[]>;
  /** Repeats a sub-graph. The first round is 1; its key is `name/1`. */
  loop<C extends object, U extends string = never>(
    name: string,
    options: LoopOptions<C, U>,
    body: (r: RoundBuilder<C>) => RoundResult<NoInfer<C>, NoInfer<U>>,
  ): { [K in keyof C]: Ref<C[K]> };
  /** Runs one of two branches; the nodes of the other never run. */
  when<T>(
    flag: Ref<boolean>,
    then: (g: GraphBuilder) => Wiring<T>,
    otherwise: (g: GraphBuilder) => Wiring<NoInfer<T>>,
    options?: { as?: string },
  ): Ref<T>;
  /** A value known while building. */
  constant<T>(value: T): Ref<T>;
}

/** A loop's body. */
export interface RoundBuilder<C> extends GraphBuilder {
  /** The value that round k-1-lag returned; the start value for the first rounds. */
  carried<K extends keyof C & string>(name: K, options?: { lag?: number }): Ref<C[K]>;
  /** This round's number; the first is 1. */
  readonly index: Ref<number>;
}

/** A graph with its configuration's schema, before it is built. */
export type GraphDefinition<In = unknown, Config = In, T = unknown> = {
  readonly name: string;
  readonly config: z.ZodType<Config, In>;
  /** Checks the configuration and builds; throws zod's error if it is invalid. */
  build(config: In): Graph<T>;
};

/** Declares a graph: a function from configuration to wired stages. */
export function graph<Schema extends z.ZodType, T>(
  name: string,
  schema: Schema,
  wire: (g: GraphBuilder, config: z.output<Schema>) => Wiring<T>,
): GraphDefinition<z.input<Schema>, z.output<Schema>, T> {
  return {
    name,
    config: schema as unknown as z.ZodType<z.output<Schema>, z.input<Schema>>,
    build: (config) => {
      const resolved = schema.parse(config);
      return buildGraph<T>(name, { config: resolved, wire: (g) => wire(g, resolved) });
    },
  };
}

type Building<T> = { config: unknown; wire: (g: GraphBuilder) => Wiring<T> };

function buildGraph<T>(name: string, { config, wire }: Building<T>): Graph<T> {
  const builder = new Builder({ next: 0 }, undefined);
  const output = withoutUndefined(wire(builder));
  builder.check(output, "the graph's output");
  const root: Scope = { nodes: builder.nodes, output };
  const lines = graphLines(name, root);
  const hash = sha256Hex(lines.join("\n"));
  return {
    name,
    config,
    nodes: root.nodes,
    output,
    hash,
    lines,
    draw: (format = "text") =>
      format === "mermaid" ? drawMermaid(root) : drawText({ name, hash }, root),
    count: () => countStages(root),
  };
}

type Counter = { next: number };

class Builder implements GraphBuilder {
  readonly nodes: GraphNode[] = [];
  readonly #names = new Map<string, number>();
  readonly #ids = new Set<number>();

  constructor(
    readonly counter: Counter,
    readonly parent: Builder | undefined,
    readonly around?: LoopNode,
  ) {}

  stage<I, O>(
    stage: Stage<I, O>,
    wiring: Wiring<NoInfer<I>>,
    options: { as?: string } = {},
  ): Ref<O> {
    const name = this.#name(options.as ?? stage.name);
    this.check(wiring, name);
    return this.#add({
      kind: "stage",
      id: this.counter.next,
      name,
      stage: stage as Stage,
      wiring: withoutUndefined(wiring),
    });
  }

  map<I extends { item: unknown }, O>(
    stage: Stage<I, O>,
    list: Ref<readonly NoInfer<I>["item"][]>,
    ...rest: MapArguments<NoInfer<I>, NoInfer<I>["item"]>
  ): Ref<O[]> {
    const [wiring = {}, options] = rest as [Record<string, unknown>?, MapOptions<never>?];
    const name = this.#name(options?.as ?? stage.name);
    this.check([list, wiring], name);
    const item_id = options?.id as ItemId | undefined;
    const node = {
      kind: "map" as const,
      id: this.counter.next,
      name,
      stage: stage as Stage,
      list,
      wiring: withoutUndefined(wiring),
    };
    return this.#add(item_id ? { ...node, item_id } : node);
  }

  flat<T>(list: Ref<readonly (readonly T[])[]>): Ref<T[]> {
    const name = this.#name("flat");
    this.check(list, name);
    return this.#add({ kind: "flat", id: this.counter.next, name, list });
  }

  loop<C extends object, U extends string = never>(
    name: string,
    options: LoopOptions<C, U>,
    body: (r: RoundBuilder<C>) => RoundResult<NoInfer<C>, NoInfer<U>>,
  ): { [K in keyof C]: Ref<C[K]> } {
    const loopName = this.#name(name);
    const carry = withoutUndefined(options.carry) as Record<string, Ref<unknown>>;
    this.check(carry, loopName);
    checkLoop(loopName, options);
    const node: LoopNode = {
      kind: "loop",
      id: this.counter.next++,
      name: loopName,
      times: options.times,
      lag: options.lag ?? 0,
      carry,
      until: options.until,
      audit: options.audit as LoopNode["audit"],
      body: { nodes: [], output: {} },
    };
    const round = new Round<C>(this.counter, this, node);
    const output = withoutUndefined(body(round)) as Record<string, unknown>;
    round.check(output, `${loopName}'s output`);
    checkCarried(node, output);
    node.body = { nodes: round.nodes, output };
    this.nodes.push(node);
    this.#ids.add(node.id);
    const refs = Object.keys(carry).map((
      key,
    ) => [key, new Ref({ from: "loop", node: node.id, carried: key })]);
    return Object.fromEntries(refs) as { [K in keyof C]: Ref<C[K]> };
  }

  when<T>(
    flag: Ref<boolean>,
    then: (g: GraphBuilder) => Wiring<T>,
    otherwise: (g: GraphBuilder) => Wiring<NoInfer<T>>,
    options: { as?: string } = {},
  ): Ref<T> {
    const name = this.#name(options.as ?? "when");
    this.check(flag, name);
    const id = this.counter.next++;
    const branches = [then, otherwise].map((branch) => {
      const builder = new Builder(this.counter, this);
      const output = withoutUndefined(branch(builder));
      builder.check(output, `${name}'s output`);
      return { nodes: builder.nodes, output };
    }) as [Scope, Scope];
    this.nodes.push({ kind: "when", id, name, flag, then: branches[0], otherwise: branches[1] });
    this.#ids.add(id);
    return new Ref<T>({ from: "node", node: id });
  }

  constant<T>(value: T): Ref<T> {
    return new Ref<T>({ from: "constant", value });
  }

  /**
   * Every reference must point into this scope or an enclosing one: a round's values are gone once
   * it has closed.
   */
  check(wiring: unknown, where: string): void {
    for (const ref of refsIn(wiring)) {
      if (!this.#sees(ref.source)) {
        throw new RangeError(
          `Cannot wire ${where} because it reads a value of a different scope: let the loop or ` +
            "branch return it",
        );
      }
    }
  }

  #sees(source: RefSource): boolean {
    if (source.from === "constant") return true;
    const here = source.from === "node" || source.from === "loop"
      ? this.#ids.has(source.node)
      : this.around?.id === source.loop;
    return here || (this.parent?.seesFromInside(source) ?? false);
  }

  seesFromInside(source: RefSource): boolean {
    return this.#sees(source);
  }

  #add<T>(node: GraphNode): Ref<T> {
    this.counter.next++;
    this.nodes.push(node);
    this.#ids.add(node.id);
    return new Ref<T>({ from: "node", node: node.id });
  }

  #name(name: string): string {
    if (!/^[A-Za-z0-9_.-]+$/.test(name)) {
      throw new RangeError(
        `Cannot name a node '${name}' because names are part of keys: use letters, digits, _ . -`,
      );
    }
    const used = (this.#names.get(name) ?? 0) + 1;
    this.#names.set(name, used);
    return used === 1 ? name : `${name}~${used}`;
  }
}

class Round<C> extends Builder implements RoundBuilder<C> {
  readonly index: Ref<number>;

  constructor(counter: Counter, parent: Builder, readonly node: LoopNode) {
    super(counter, parent, node);
    this.index = new Ref<number>({ from: "index", loop: node.id });
  }

  carried<K extends keyof C & string>(name: K, options: { lag?: number } = {}): Ref<C[K]> {
    const lag = options.lag ?? 0;
    if (!(name in this.node.carry)) {
      throw new RangeError(
        `Cannot read carried '${name}' because ${this.node.name} carries: ${
          Object.keys(this.node.carry)
        }`,
      );
    }
    if (!Number.isInteger(lag) || lag < 0) {
      throw new RangeError(
        `Cannot read carried '${name}' with lag ${lag}: a lag is 0 or more rounds`,
      );
    }
    this.node.lag = Math.max(this.node.lag, lag);
    return new Ref<C[K]>({ from: "carried", loop: this.node.id, name, lag });
  }
}

function checkLoop(name: string, options: { times: number; lag?: number }): void {
  for (const [field, value] of Object.entries({ times: options.times, lag: options.lag ?? 0 })) {
    if (!Number.isInteger(value) || value < 0) {
      throw new RangeError(
        `Cannot loop '${name}' with ${field} ${value}: use a whole number, 0 or more`,
      );
    }
  }
}

function checkCarried(node: LoopNode, output: Record<string, unknown>): void {
  const needed = [...Object.keys(node.carry), ...(node.until ? [node.until] : [])];
  const missing = needed.filter((name) => !(name in output));
  if (missing.length > 0) {
    throw new RangeError(`Cannot loop '${node.name}' because its body does not return: ${missing}`);
  }
}

/** A wiring without its undefined fields: what a graph leaves out is absent, not undefined. */
function withoutUndefined<W>(wiring: W): W {
  if (typeof wiring !== "object" || wiring === null || wiring instanceof Ref) return wiring;
  if (Array.isArray(wiring)) return wiring.map(withoutUndefined) as W;
  const fields = Object.entries(wiring).filter(([, value]) => value !== undefined);
  return Object.fromEntries(fields.map(([name, value]) => [name, withoutUndefined(value)])) as W;
}

/** All references inside a wiring, in order of its fields. */
export function refsIn(wiring: unknown): Ref<unknown>[] {
  if (wiring instanceof Ref) return [wiring];
  if (typeof wiring !== "object" || wiring === null) return [];
  return Object.values(wiring).flatMap(refsIn);
}
