/**
 * One instance of a scope of the graph: every node is a memoised promise, started immediately,
 * waiting for its inputs.
 */
import { BadDataError } from "../errors.ts";
import { type Execution, quietly } from "./executor.ts";
import { LoopRun, MISSING } from "./loop.ts";
import { runStage } from "./stage.ts";
import type { StageTask } from "./task.ts";
import { loopsBefore } from "../graph/reads.ts";
import {
  type FlatNode,
  type GraphNode,
  type MapNode,
  Ref,
  type RefSource,
} from "../graph/types.ts";
import type { Scope, StageNode, WhenNode } from "../graph/types.ts";
import { inOrder, ItemStream, type Order } from "./item_stream.ts";
import { addTally } from "../journal/tree.ts";
import { itemId, joinKey, segment } from "../graph/keys.ts";
import type { InRound } from "../journal/recorded_metrics.ts";
import { slotsOf } from "../graph/stage.ts";
import type { NewRow } from "../stores/store.ts";

type ScopeOptions = {
  scope: Scope;
  /** Key of the scope: `round/3`; empty for the run. */
  path: string;
  parent?: ScopeRun;
  /** Set for the body of a loop. */
  round?: { loop: LoopRun; number: number };
};

/**
 * A node's value: `staged` once its rows are durable or in flight, on which a closing round may
 * already rely; `durable` settles when they are.
 */
type Cell = { staged: unknown; durable: Promise<unknown> };

export class ScopeRun {
  /** Sum of the tallies recorded in this scope. */
  readonly tally: Record<string, number> = {};
  readonly #cells = new Map<number, Cell>();
  readonly #streams = new Map<number, ItemStream>();
  readonly #loops = new Map<number, LoopRun>();
  readonly #after: Map<number, readonly string[]>;

  constructor(readonly execution: Execution, readonly options: ScopeOptions) {
    this.#after = options.parent ? options.parent.#after : loopsBefore(options.scope);
  }

  get in_round(): InRound | null {
    const { round, parent } = this.options;
    return round
      ? { loop: round.loop.options.path, round: round.number }
      : parent?.in_round ?? null;
  }

  /** Starts every node; settles when all are recorded. */
  start(): Promise<void> {
    for (const node of this.options.scope.nodes) this.#startNode(node);
    const all = [...this.#cells.values()].map(({ durable }) => durable);
    return quietly(Promise.all(all).then(() => {}));
  }

  #startNode(node: GraphNode): void {
    const cell = { staged: MISSING } as Cell;
    this.#cells.set(node.id, cell); // First: a map over nothing is staged at once.
    cell.durable = quietly(this.#run(node));
    cell.durable.catch((error) => this.execution.fail(error));
  }

  #run(node: GraphNode): Promise<unknown> {
    switch (node.kind) {
      case "stage":
        return this.#runStage(node);
      case "map":
        return this.#runMap(node);
      case "flat":
        return this.#runFlat(node);
      case "when":
        return this.#runWhen(node);
      case "loop": {
        const open = (key: string, number: number): ScopeRun =>
          new ScopeRun(this.execution, {
            scope: node.body,
            path: key,
            parent: this,
            round: { loop, number },
          });
        const path = joinKey(this.options.path, node.name);
        const loop: LoopRun = new LoopRun(this.execution, { node, parent: this, path, open });
        this.#loops.set(node.id, loop);
        return loop.execute().then((value) => this.#stageSilently(node.id, value));
      }
    }
  }

  async #runStage(node: StageNode): Promise<unknown> {
    const input = await this.resolve(node.wiring);
    const staged = (output: unknown) => this.#stage(node.id, output);
    return await runStage(this.execution, { ...this.#task(node, node.name), input, staged });
  }

  #task(node: StageNode | MapNode, name: string): Omit<StageTask, "input"> {
    const entry = this.execution.settings.journal.root.at(joinKey(this.options.path, name));
    const after = this.#after.get(node.id) ?? [];
    return { entry, stage: node.stage, scope: this, after, slots: slotsOf(node.stage) };
  }

  #runMap(node: MapNode): Promise<unknown> {
    const out = new ItemStream();
    this.#streams.set(node.id, out);
    new MapRun(this, {
      node,
      out,
      rest: quietly(this.resolve(node.wiring)) as Promise<Record<string, unknown>>,
      task: (id) => this.#task(node, segment(node.name, id)),
      staged: (list) => this.#stage(node.id, list),
    }).follow(this.#streamOf(node.list));
    return out.list();
  }

  #runFlat(node: FlatNode): Promise<unknown> {
    const out = new ItemStream();
    this.#streams.set(node.id, out);
    this.#streamOf(node.list).subscribe({
      item: (order, value) => {
        if (Array.isArray(value)) value.forEach((item, place) => out.push([...order, place], item));
        else {out.end(
            new BadDataError(
              `Cannot flatten '${node.name}' because one of its items is not a list but ` +
                `${typeof value}`,
            ),
          );}
      },
      end: (error) => out.end(error),
    });
    return out.list();
  }

  async #runWhen(node: WhenNode): Promise<unknown> {
    const branch = await this.resolve(node.flag) ? "then" : "otherwise";
    const path = joinKey(this.options.path, `${node.name}/${branch}`);
    const inner = new ScopeRun(this.execution, { scope: node[branch], path, parent: this });
    await inner.start();
    return this.#stageSilently(node.id, await inner.resolve(node[branch].output));
  }

  /** Counts here and in every enclosing scope. */
  addTally(counts: Record<string, number>): void {
    addTally(this.tally, counts);
    this.options.parent?.addTally(counts);
  }

  /** Marks a node's value as in flight; returns the row of the round that it completes, if any. */
  #stage(id: number, value: unknown): NewRow | undefined {
    this.#stageSilently(id, value);
    const { round } = this.options;
    return round && this.#isStaged ? round.loop.closingRow(this, round.number) : undefined;
  }

  #stageSilently(id: number, value: unknown): unknown {
    this.#cells.get(id)!.staged = value;
    return value;
  }

  get #isStaged(): boolean {
    return this.options.scope.nodes.every(({ id, kind }) => {
      const cell = this.#cells.get(id);
      return kind === "flat" || (cell !== undefined && cell.staged !== MISSING);
    });
  }

  /**
   * The value of a wiring: references replaced by what they point to, as soon as all of it is
   * available.
   */
  async resolve(wiring: unknown): Promise<unknown> {
    if (wiring instanceof Ref) return fieldOf(await this.#valueOf(wiring.source), wiring.path);
    if (typeof wiring !== "object" || wiring === null) return wiring;
    if (Array.isArray(wiring)) return await Promise.all(wiring.map((item) => this.resolve(item)));
    const fields = Object.entries(wiring).map(async (
      [name, value],
    ) => [name, await this.resolve(value)]);
    return Object.fromEntries(await Promise.all(fields));
  }

  #valueOf(source: RefSource): Promise<unknown> | unknown {
    switch (source.from) {
      case "constant":
        return source.value;
      case "index":
        return this.#roundOf(source.loop).number;
      case "carried": {
        const { loop, number } = this.#roundOf(source.loop);
        return loop.carried(number, source);
      }
      case "loop":
        return this.#durable(source.node).then((value) => fieldOf(value, [source.carried]));
      case "node":
        return this.#durable(source.node);
    }
  }

  /**
   * The value of a wiring from what is staged, without waiting; MISSING if a part of it is missing.
   */
  peek(wiring: unknown): unknown {
    if (wiring instanceof Ref) {
      const value = this.#peekSource(wiring.source);
      return value === MISSING ? MISSING : fieldOf(value, wiring.path);
    }
    if (typeof wiring !== "object" || wiring === null) return wiring;
    const fields = Object.entries(wiring).map(([name, value]) => [name, this.peek(value)] as const);
    if (fields.some(([, value]) => value === MISSING)) return MISSING;
    return Array.isArray(wiring) ? fields.map(([, value]) => value) : Object.fromEntries(fields);
  }

  #peekSource(source: RefSource): unknown {
    switch (source.from) {
      case "constant":
        return source.value;
      case "index":
        return this.#roundOf(source.loop).number;
      case "carried": {
        const { loop, number } = this.#roundOf(source.loop);
        return loop.peekCarried(number, source);
      }
      case "loop": {
        const value = this.#holder(source.node).#peekNode(source.node);
        return value === MISSING ? MISSING : fieldOf(value, [source.carried]);
      }
      case "node":
        return this.#holder(source.node).#peekNode(source.node);
    }
  }

  #durable(id: number): Promise<unknown> {
    return this.#holder(id).#cells.get(id)!.durable;
  }

  #peekNode(id: number): unknown {
    const { staged } = this.#cells.get(id)!;
    if (staged !== MISSING) return staged;
    const node = this.options.scope.nodes.find((node) => node.id === id);
    if (node?.kind !== "flat") return MISSING;
    const lists = this.peek(node.list);
    return Array.isArray(lists) ? lists.flat(1) : MISSING;
  }

  #streamOf(list: Ref<unknown>): ItemStream {
    if (list.source.from === "node" && list.path.length === 0) {
      const stream = this.#holder(list.source.node).#streams.get(list.source.node);
      if (stream) return stream;
    }
    return ItemStream.of(this.resolve(list));
  }

  /** The scope, this one or an enclosing one, that has the node. */
  #holder(id: number): ScopeRun {
    if (this.#cells.has(id)) return this;
    if (!this.options.parent) {
      throw new RangeError(`Cannot read node ${id} because no scope has it`);
    }
    return this.options.parent.#holder(id);
  }

  #roundOf(loop: number): { loop: LoopRun; number: number } {
    const { round, parent } = this.options;
    if (round?.loop.options.node.id === loop) return round;
    if (!parent) {
      throw new RangeError(
        `Cannot read a carried value because it is outside the rounds of loop ${loop}`,
      );
    }
    return parent.#roundOf(loop);
  }
}

type MapOptions = {
  node: MapNode;
  out: ItemStream;
  /** The inputs that all items share. */
  rest: Promise<Record<string, unknown>>;
  task(id: string | number): Omit<StageTask, "input">;
  staged(list: unknown[]): NewRow | undefined;
};

/** A map node at work: one task per item, keyed by the item's id. */
class MapRun {
  readonly #seen = new Set<string>();
  readonly #staged: { order: Order; value: unknown }[] = [];
  #items = 0;
  #finished = 0;
  #complete = false;

  constructor(readonly scope: ScopeRun, readonly options: MapOptions) {}

  follow(source: ItemStream): void {
    source.subscribe({
      item: (order, value) => this.#take(order, value),
      end: (error) => {
        if (error) return this.options.out.end(error);
        this.#complete = true;
        if (this.#items === 0) this.#checkStaged();
        this.#checkFinished();
      },
    });
  }

  #take(order: Order, value: unknown): void {
    const fail = (error: Error) => this.options.out.end(error);
    try {
      const id = this.#claimId(value);
      this.#items++;
      this.#start(id, { order, value }).catch(fail);
    } catch (error) {
      fail(error as Error);
    }
  }

  async #start(
    id: string | number,
    { order, value }: { order: Order; value: unknown },
  ): Promise<void> {
    const { node, out, rest, task } = this.options;
    const input = { ...await rest, item: value };
    const output = await runStage(this.scope.execution, {
      ...task(id),
      slots: slotsOf(node.stage),
      input,
      staged: (output) => {
        this.#staged.push({ order, value: output });
        return this.#checkStaged();
      },
    });
    out.push(order, output);
    this.#finished++;
    this.#checkFinished();
  }

  #claimId(value: unknown): string | number {
    const { node } = this.options;
    const id = itemId(value, node.item_id);
    if (id === undefined) {
      throw new BadDataError(
        `Cannot map '${node.name}' over an item without an id: give items an 'id' or pass { id }`,
      );
    }
    if (this.#seen.has(String(id))) {
      throw new BadDataError(
        `Cannot map '${node.name}' because two of its items have the id '${id}'`,
        { id },
      );
    }
    this.#seen.add(String(id));
    return id;
  }

  #checkStaged(): NewRow | undefined {
    if (!this.#complete || this.#staged.length < this.#items) return undefined;
    return this.options.staged(inOrder(this.#staged));
  }

  #checkFinished(): void {
    if (this.#complete && this.#finished === this.#items) this.options.out.end();
  }
}

function fieldOf(value: unknown, path: readonly string[]): unknown {
  return path.reduce(
    (inner: unknown, field) => (inner as Record<string, unknown> | null | undefined)?.[field],
    value,
  );
}
