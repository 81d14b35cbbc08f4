/** One attempt of a body, as the executor accounts for it. */
import type { CallOptions } from "../graph/context.ts";
import { AmbiguousKeyError, InfrastructureError, UserCodeError } from "../errors.ts";
import { type Execution, quietly } from "./executor.ts";
import type { StageTask, Stoppable } from "./task.ts";
import type { Journal } from "../journal/journal.ts";
import { addTally, type Entry } from "../journal/tree.ts";
import { segment } from "../graph/keys.ts";
import type { NewRow } from "../stores/store.ts";

/** A fact on its way to the journal. */
export type Note = { kind: "metrics" | `note/${string}`; key: string; value: unknown };
type Named = { calls: number; open: number };
type Body<T> = (entry: Entry) => Promise<T>;

/**
 * The open calls, what the attempt's record will contain besides its result, and how the attempt
 * ends. The body itself sees a `BodyContext`.
 */
export class Frame implements Stoppable {
  readonly task: StageTask;
  readonly entry: Entry;
  readonly key: string;
  readonly attempt: number;
  /** Segments of the children that this attempt has requested. */
  readonly requested = new Set<string>();
  /** When the body last showed progress, by the monotonic clock. */
  progressed_ms: number;
  /** Emitted by the body since its last checkpoint. */
  readonly emitted: Note[] = [];
  readonly #controller = new AbortController();
  readonly #names = new Map<string, Named>();
  readonly #children = new Set<Stoppable>();
  readonly #recorded = Promise.withResolvers<void>();
  #notes: Note[] = [];
  #tally: Record<string, number> | undefined;
  /** Calls that have not settled: steps, stages, sleeps, signals. */
  #open_calls = 0;
  /** Those among them that do work. */
  #open_work = 0;
  #closed: Error | undefined;
  #has_ended = false;

  constructor(
    readonly execution: Execution,
    { task, attempt }: { task: StageTask; attempt: number },
  ) {
    this.task = task;
    this.entry = task.entry;
    this.key = task.entry.key;
    this.attempt = attempt;
    this.progressed_ms = execution.settings.clock.monotonic();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Counts as work in flight from here on, and ends with the frame of the body that called it. */
  begin(): void {
    this.execution.enter();
    this.execution.addFrame(this);
    const { parent } = this.task;
    parent?.adopt(this);
    if (parent?.closed) this.stop(parent.closed);
  }

  /** The attempt is over: nothing that its body still does counts. */
  end(): void {
    this.task.parent?.release(this);
    this.execution.removeFrame(this);
    this.#has_ended = true;
    for (const child of this.#children) child.stop(this.closed!);
    // While calls were open this frame did not count.
    if (this.#open_calls === 0) this.execution.leave();
    this.#open_calls = Infinity;
  }

  /** `child` ends with this body. */
  adopt(child: Stoppable): void {
    this.#children.add(child);
  }

  release(child: Stoppable): void {
    this.#children.delete(child);
  }

  /** Tells the body, and what it called, to stop; refuses whatever they do next. */
  stop(reason: Error): void {
    this.#closed ??= reason;
    this.#controller.abort(reason);
    for (const child of this.#children) child.stop(reason);
  }

  /** Why the executor ignores what this body does from now on. */
  get closed(): Error | undefined {
    // Made when it is needed: most bodies end with nothing left to refuse.
    if (this.#has_ended) {
      this.#closed ??= new InfrastructureError(
        `Cannot act for '${this.key}' because attempt ${this.attempt} has ended`,
      );
    }
    return this.#closed;
  }

  /** Refuses an action of a body that has been stopped or has ended. */
  check(): void {
    const { closed } = this;
    if (closed) throw closed;
  }

  /**
   * A body that returns must have awaited its steps and calls: their results would come too late to
   * count.
   */
  checkAwaited(): void {
    if (this.#open_work === 0) return;
    throw new UserCodeError(
      `Cannot record '${this.key}' because its body returned with ${this.#open_work} open ` +
        "step(s) or call(s): await them",
    );
  }

  progressed(): void {
    this.progressed_ms = this.execution.settings.clock.monotonic();
  }

  /** Settles with `settle`. */
  recorded(): Promise<void> {
    return this.#recorded.promise;
  }

  /** The end of this attempt is durable, or will not be recorded because its caller ended first. */
  settle(): void {
    this.#recorded.resolve();
  }

  /** Keeps a note for the append of the result. */
  note(note: Note): void {
    this.#notes.push(note);
  }

  tally(counts: Record<string, number>): void {
    this.#tally = addTally(this.#tally ?? {}, counts);
  }

  /** Rows of what was emitted and of the notes taken so far. */
  takeNotes(): Promise<NewRow[]> {
    return rowsOf([...this.emitted, ...this.#notes], this.execution.settings.journal);
  }

  takeTally(): Record<string, number> | undefined {
    return this.#tally;
  }

  announceNotes(): void {
    for (const note of this.#notes) this.execution.event({ type: "note", ...note });
    this.#notes = [];
  }

  /** A child that does work: the body must await it before it returns. */
  work<T>(name: string, options: CallOptions, body: Body<T>): Promise<T> {
    return this.child(name, options, async (entry) => {
      this.#open_work++;
      try {
        return await body(entry);
      } finally {
        this.#open_work--;
      }
    });
  }

  /**
   * A body that throws between making its calls and awaiting them must not end the process with a
   * stray rejection.
   */
  child<T>(name: string, options: CallOptions, body: Body<T>): Promise<T> {
    return quietly(this.#named(name, options, body));
  }

  /**
   * Names the call, and counts it as open: a body that waits for its calls is not what a drain
   * waits for.
   */
  async #named<T>(name: string, { id }: CallOptions, body: Body<T>): Promise<T> {
    this.check();
    const named = this.#names.get(name) ?? { calls: 0, open: 0 };
    if (id === undefined && named.open > 0) {
      throw this.#ambiguous(name, `${named.open} more of it open`);
    }
    const childSegment = segment(name, id ?? ++named.calls);
    if (this.requested.has(childSegment)) {
      throw this.#ambiguous(name, `'${childSegment}' was already requested`);
    }
    this.requested.add(childSegment);
    this.#names.set(name, named);
    named.open++;
    if (this.#open_calls++ === 0) this.execution.leave();
    try {
      return await body(this.entry.child(childSegment));
    } finally {
      named.open--;
      if (--this.#open_calls === 0) this.execution.enter();
    }
  }

  #ambiguous(name: string, current: string): AmbiguousKeyError {
    return new AmbiguousKeyError(
      `Cannot call '${name}' in '${this.key}' with ${current}: give each such call its own { id }`,
      { key: this.key, name },
    );
  }
}

export function rowsOf(notes: readonly Note[], journal: Journal): Promise<NewRow[]> {
  return Promise.all(notes.map(({ kind, key, value }) => journal.row(kind, key, value)));
}
