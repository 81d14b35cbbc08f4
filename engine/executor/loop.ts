/**
 * Runs a loop: opens rounds within its lag, closes them in order, and carries values from round to
 * round.
 */
import { canonicalJson } from "../canonical.ts";
import { AuditError, type EngineError } from "../errors.ts";
import { type Execution, quietly } from "./executor.ts";
import type { LoopNode } from "../graph/types.ts";
import { addTally, type RoundRecord } from "../journal/tree.ts";
import { joinKey } from "../graph/keys.ts";
import type { NewRow } from "../stores/store.ts";

/** No value yet. */
export const MISSING = Symbol("missing");

/** What a loop needs from the enclosing scope and from the scopes of its rounds. */
type LoopScope = {
  /** Sum of the tallies recorded in this scope. */
  readonly tally: Record<string, number>;
  /** Starts every node; settles when all are recorded. */
  start(): Promise<void>;
  /** The value of a wiring, as soon as all of it is available. */
  resolve(wiring: unknown): Promise<unknown>;
  /** The value of a wiring from what is staged; MISSING if a part of it is missing. */
  peek(wiring: unknown): unknown;
};

type LoopRunOptions = {
  node: LoopNode;
  parent: Pick<LoopScope, "resolve">;
  path: string;
  /** Makes the scope of a round under its key. */
  open(key: string, round: number): LoopScope;
};
type Carried = Record<string, unknown>;
type Source = { name: string; lag: number };
type OpenRound = {
  scope: LoopScope;
  opened_seq: number;
  values: Promise<Carried>;
  closed: Promise<void>;
};

export class LoopRun {
  readonly #open = new Map<number, OpenRound>();
  /** What closed rounds returned, as far back as an open round may read. */
  readonly #carried = new Map<number, Carried>();
  /** Rounds whose row is durable or in flight. */
  readonly #recorded = new Map<number, RoundRecord>();
  readonly #start: Promise<Carried>;
  #start_value: Carried | undefined;
  #recorded_to = 0;
  #total: Record<string, number> = {};
  /**
   * The first round that asked to be the last. Rounds that its lag had opened by then are run to
   * their end.
   */
  #until_round = Infinity;
  #open_after_seq = 0;
  #rejected: EngineError | undefined;

  constructor(readonly execution: Execution, readonly options: LoopRunOptions) {
    const { node, parent, path } = options;
    this.#start = quietly(
      parent.resolve(node.carry).then((value) => this.#start_value = value as Carried),
    );
    for (const record of execution.settings.journal.rounds.get(path) ?? []) this.#restore(record);
  }

  #restore({ round, carried, total, until, open_after_seq }: RoundRecord): void {
    this.#carried.set(round, carried);
    this.#recorded_to = round;
    this.#total = total;
    if (until) this.#until_round = Math.min(this.#until_round, round);
    this.#open_after_seq = open_after_seq;
    this.#dropEntries(round);
  }

  /** Runs the remaining rounds; returns the last one's result. */
  async execute(): Promise<Carried> {
    const { node: { times, lag } } = this.options;
    for (let round = this.#recorded_to + 1; round <= times; round++) {
      // At most lag + 1 rounds are open, this one included.
      await this.#open.get(round - lag - 1)?.closed;
      if (round - lag - 1 >= this.#until_round) break;
      this.#openRound(round);
    }
    for (const { closed } of [...this.#open.values()]) await closed;
    return { ...await this.#start, ...this.#carried.get(this.#recorded_to) };
  }

  #openRound(number: number): void {
    const { journal } = this.execution.settings;
    const { node, path } = this.options;
    const key = joinKey(path, String(number));
    const scope = this.options.open(key, number);
    // Rows of this round that an earlier engine wrote are after the restored mark.
    const replayed = journal.root.at(key).tally();
    addTally(scope.tally, replayed);
    const opened_seq = this.#replaying(key) ? this.#open_after_seq : journal.last_seq;
    const before = this.#open.get(number - 1)?.closed;
    const open = { scope, opened_seq } as OpenRound;
    this.#open.set(number, open);
    const done = scope.start();
    open.values = quietly(scope.resolve(node.body.output) as Promise<Carried>);
    open.closed = quietly(this.#close(number, { done, before }));
  }

  #replaying(key: string): boolean {
    const entry = this.execution.settings.journal.root.at(key);
    return entry.children.size > 0;
  }

  async #close(
    number: number,
    { done, before }: { done: Promise<void>; before?: Promise<void> },
  ): Promise<void> {
    await done;
    await before;
    const { scope, values } = this.#open.get(number)!;
    if (!this.#recorded.has(number)) {
      await this.#recordAlone(number, { scope, output: await values });
    }
    const record = this.#recorded.get(number)!;
    this.#recorded.delete(number);
    this.#carried.set(number, record.carried);
    if (record.until) this.#until_round = Math.min(this.#until_round, number);
    this.#open.delete(number);
    this.#carried.delete(number - this.options.node.lag - 1);
    this.#dropEntries(number);
    const { tally, total, carried } = record;
    const { node: { times }, path } = this.options;
    const announce = () =>
      this.execution.event({
        type: "round_closed",
        loop: path,
        round: number,
        times,
        carried,
        tally,
        total,
      });
    const durable = this.execution.settings.journal.unsettled();
    if (durable) quietly(durable.then(announce));
    else announce();
  }

  /**
   * The usual way: the row of a round shares the append of its last result. Undefined if that is
   * impossible.
   */
  closingRow(scope: LoopScope, number: number): NewRow | undefined {
    if (number !== this.#recorded_to + 1) return undefined;
    const output = scope.peek(this.options.node.body.output);
    if (output === MISSING) return undefined;
    const record = this.#record(number, { scope, output: output as Carried });
    const value = record && this.execution.settings.journal.encodeInline(record);
    if (!value) return undefined;
    this.#commit(record);
    return { kind: "round", key: joinKey(this.options.path, String(number)), value };
  }

  /**
   * If the last result could not know that it was the last, or the values are too long for a row.
   */
  async #recordAlone(
    number: number,
    closing: { scope: LoopScope; output: Carried },
  ): Promise<void> {
    const record = this.#record(number, closing);
    if (!record) throw this.#rejected!;
    const { journal } = this.execution.settings;
    this.#commit(record);
    await journal.append([
      await journal.row("round", joinKey(this.options.path, String(number)), record),
    ]);
  }

  #commit(record: RoundRecord): void {
    this.#recorded.set(record.round, record);
    this.#recorded_to = record.round;
    this.#total = record.total;
  }

  /** What closes a round, if the audit agrees. */
  #record(
    number: number,
    { scope, output }: { scope: LoopScope; output: Carried },
  ): RoundRecord | undefined {
    const { node, path } = this.options;
    const { graph_hash } = this.execution.settings;
    const carried = Object.fromEntries(Object.keys(node.carry).map((name) => [name, output[name]]));
    const total = addTally({ ...this.#total }, scope.tally);
    const complaint = node.audit?.({ tally: total, carried, round: number }) ?? null;
    if (complaint !== null) {
      this.#rejected ??= new AuditError(`Cannot close '${path}/${number}': ${complaint}`, {
        key: `${path}/${number}`,
        total,
      });
      this.execution.fail(this.#rejected);
      return undefined;
    }
    return {
      round: number,
      carried: JSON.parse(canonicalJson(carried)),
      tally: { ...scope.tally },
      total,
      graph_hash,
      until: node.until !== undefined && output[node.until] === true,
      open_after_seq: this.#markAfter(number),
    };
  }

  /** No row of a later round is at or below this seq. */
  #markAfter(number: number): number {
    const later = [...this.#open].filter(([round]) => round > number).map(([, { opened_seq }]) =>
      opened_seq
    );
    return Math.min(this.execution.settings.journal.last_seq, ...later);
  }

  /**
   * What round `number` reads: the value that round number-1-lag returned, as soon as it is
   * available, or the start. Also the start for a name that a closed round did not carry: a fork
   * may carry more than the run whose rounds it inherited.
   */
  async carried(number: number, { name, lag }: Source): Promise<unknown> {
    const from = number - 1 - lag;
    const closed = this.#carried.get(from);
    if (closed && name in closed) return closed[name];
    if (closed || from <= 0) return (await this.#start)[name];
    const output = this.options.node.body.output as Carried;
    return await this.#open.get(from)!.scope.resolve(output[name]);
  }

  peekCarried(number: number, { name, lag }: Source): unknown {
    const from = number - 1 - lag;
    const closed = this.#carried.get(from) ?? this.#recorded.get(from)?.carried;
    if (closed && name in closed) return closed[name];
    if (closed || from <= 0) return this.#start_value ? this.#start_value[name] : MISSING;
    return MISSING;
  }

  #dropEntries(round: number): void {
    this.execution.settings.journal.root.at(this.options.path).drop(String(round));
  }
}
