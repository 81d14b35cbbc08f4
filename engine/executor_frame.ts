/** One attempt of a body, as the body sees it: the context. */
import type { ArtifactStore } from "./artifacts.ts";
import { canonicalJson } from "./canonical.ts";
import type { CallOptions, Emission, Recorded, RecordingContext, StepContext } from "./context.ts";
import { AmbiguousKeyError, FencedError, InfrastructureError, InvalidInputError, UserCodeError } from "./errors.ts";
import { type Execution, quietly } from "./executor.ts";
import type { StageTask, Stoppable } from "./executor_task.ts";
import { addTally, type Entry } from "./journal_tree.ts";
import { segment } from "./keys.ts";
import { stillOwns } from "./ownership.ts";
import { randomStream } from "./random.ts";
import { recordedValue } from "./recorded_value.ts";
import { recordedMetrics } from "./recorded_metrics.ts";
import type { Resource } from "./resource.ts";
import { slotsOf, type Stage } from "./stage.ts";
import type { NewRow, ReadQuery } from "./store.ts";

type Note = { kind: "metrics" | `note/${string}`; key: string; value: unknown };
type Named = { calls: number; open: number };
/** Handed in by `executor_stage.ts`, which makes the frames. */
type RunStage = (execution: Execution, task: StageTask) => Promise<unknown>;
type FrameOptions = { task: StageTask; attempt: number; run_stage: RunStage };

export class Frame implements RecordingContext {
  readonly run: string;
  readonly key: string;
  readonly attempt: number;
  readonly since_attempt: number;
  readonly epoch: number;
  readonly idempotency_key: string;
  readonly artifacts: ArtifactStore;
  /** Segments of the children that this attempt has asked for. */
  readonly asked = new Set<string>();
  /** When the body last showed progress, by the monotonic clock. */
  progressed_ms: number;
  readonly #entry: Entry;
  readonly #controller = new AbortController();
  readonly #names = new Map<string, Named>();
  readonly #streams = new Map<string, () => number>();
  #notes: Note[] = [];
  /** Not recorded yet. */
  #emitted: Note[] = [];
  #tally: Record<string, number> | undefined;
  readonly #children = new Set<Stoppable>();
  /** Calls that have not settled: steps, stages, sleeps, signals. */
  #open_calls = 0;
  /** Those among them that do work. */
  #open_work = 0;
  #closed: Error | undefined;
  readonly #recorded = Promise.withResolvers<void>();

  constructor(readonly execution: Execution, readonly options: FrameOptions) {
    const { run, epoch, artifacts, clock } = execution.settings;
    this.run = run;
    this.epoch = epoch;
    this.artifacts = artifacts;
    this.#entry = options.task.entry;
    this.key = this.#entry.key;
    this.attempt = options.attempt;
    this.since_attempt = (this.#entry.failures.at(-1)?.attempt ?? 0) + 1;
    this.idempotency_key = `${run}/${this.key}`;
    this.progressed_ms = clock.monotonic();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Counts as work in flight from here on, and ends with the frame of the body that called it. */
  begin(): void {
    this.execution.enter();
    this.execution.addFrame(this);
    const { parent } = this.options.task;
    parent?.adopt(this);
    if (parent?.closed) this.stop(parent.closed);
  }

  /** The attempt is over: nothing that its body still does counts. */
  end(): void {
    const { parent } = this.options.task;
    parent?.release(this);
    this.execution.removeFrame(this);
    this.#closed ??= new InfrastructureError(`Cannot act for '${this.key}' because attempt ${this.attempt} has ended`);
    for (const child of this.#children) child.stop(this.#closed);
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

  /** Why nothing that this body does counts any more. */
  get closed(): Error | undefined {
    return this.#closed;
  }

  /** A body that returns must have awaited its steps and calls: their results would come too late to count. */
  checkAwaited(): void {
    if (this.#open_work === 0) return;
    throw new UserCodeError(
      `Cannot record '${this.key}' because its body returned with ${this.#open_work} open step(s) or call(s): await them`,
    );
  }

  step<T>(name: string, fn: (step: StepContext) => Promise<T> | T, options: CallOptions = {}): Promise<T> {
    return this.#work(name, options, async (entry) => {
      if (entry.result !== undefined) return await this.execution.settings.journal.output(entry.key, entry.result) as T;
      if (this.execution.state !== "open") return await this.execution.park<T>();
      this.execution.enter();
      try {
        if (this.options.task.stage.eager) await this.durable();
        const emitted: Note[] = [];
        const emit = (emission: Emission) => this.#emit(emission, { key: entry.key, emitted });
        const step = { signal: this.signal, key: entry.key, idempotency_key: `${this.run}/${entry.key}`, emit };
        return await this.#recordStep<T>(entry, await fn(step), emitted);
      } finally {
        this.execution.leave();
      }
    });
  }

  call<I, O>(stage: Stage<I, O>, input: NoInfer<I>, options: CallOptions = {}): Promise<O> {
    const { stage: parent, scope } = this.options.task;
    if (parent.runs_on !== "engine") {
      throw new InvalidInputError(
        `Cannot call '${stage.name}' from '${this.key}' because it holds a slot of '${parent.runs_on}': a stage that calls stages runs on the engine`,
      );
    }
    return this.#work(stage.name, options, (entry) => {
      const slots = stage.runs_on === "engine" ? undefined : slotsOf(stage);
      const task = { entry, stage: stage as Stage, input, scope, slots, parent: this };
      return this.options.run_stage(this.execution, task) as Promise<O>;
    });
  }

  emit(emission: Emission): void {
    this.#emit(emission, { key: this.key, emitted: this.#emitted });
  }

  #emit(emission: Emission, { key, emitted }: { key: string; emitted: Note[] }): void {
    const { metrics, log, progress } = emission;
    if (metrics) {
      const { stage, scope: { in_round } } = this.options.task;
      const value = recordedMetrics(emission, {
        at_ms: this.execution.settings.clock.now(),
        stage: stage.name,
        in_round,
      });
      if (value) emitted.push({ kind: "metrics", key, value });
      this.execution.event({ type: "metrics", key, metrics });
    }
    if (log !== undefined) this.execution.event({ type: "log", key, text: log });
    if (!progress) return;
    this.progressed();
    this.execution.event({ type: "progress", key, ...progress });
  }

  progressed(): void {
    this.progressed_ms = this.execution.settings.clock.monotonic();
  }

  note(name: string, key: string, value: unknown): void {
    this.#check();
    this.#notes.push({ kind: `note/${name}`, key, value });
  }

  async record(kind: "recovery" | `note/${string}`, key: string, value: unknown): Promise<void> {
    this.#check();
    const { journal } = this.execution.settings;
    await journal.append([await journal.row(kind, key, value)], this.options.task.stage.phase);
    this.execution.event({ type: "note", kind, key, value });
  }

  async durable(): Promise<void> {
    this.#check();
    await this.execution.settings.journal.unsettled();
  }

  recorded(): Promise<void> {
    return this.#recorded.promise;
  }

  /** The end of this attempt is durable, or will not be recorded as its caller ended first. */
  settle(): void {
    this.#recorded.resolve();
  }

  async owned(): Promise<void> {
    this.#check();
    const { run, epoch, journal } = this.execution.settings;
    if (await stillOwns(journal.options.store, run, epoch)) return;
    this.execution.stop(
      new FencedError(`Cannot continue with '${this.key}' because another engine has taken over run '${run}'`, {
        run,
        epoch,
      }),
    );
    this.#check();
  }

  tally(counts: Record<string, number>): void {
    this.#check();
    this.#tally = addTally(this.#tally ?? {}, counts);
  }

  async read(query: ReadQuery): Promise<Recorded[]> {
    const { journal } = this.execution.settings;
    const rows = await journal.options.store.read(this.run, query);
    return await Promise.all(rows.map(async (row) => ({ ...row, value: await journal.fetch(recordedValue(row)) })));
  }

  async checkpoint(value: unknown): Promise<void> {
    this.#check();
    const { journal } = this.execution.settings;
    const emitted = await this.#rows(this.#emitted.splice(0));
    const row = await journal.row("checkpoint", this.key, value);
    await journal.append([...emitted, row], this.options.task.stage.phase);
    this.#entry.checkpoints = [...this.#entry.checkpoints, row.value];
    this.progressed();
  }

  async checkpoints(): Promise<unknown[]> {
    const { journal } = this.execution.settings;
    return await Promise.all(
      this.#entry.checkpoints.map((text) =>
        journal.fetch(recordedValue({ kind: "checkpoint", key: this.key, value: text }))
      ),
    );
  }

  sleep(ms: number, options: CallOptions = {}): Promise<void> {
    return this.#child("sleep", options, async (entry) => {
      const { clock } = this.execution.settings;
      const until_ms = entry.result === undefined
        ? await this.#recordStep(entry, clock.now() + ms)
        : await this.execution.settings.journal.output(entry.key, entry.result) as number;
      const wait = Math.min(until_ms - clock.now(), ms); // More only if the wall clock was set back since.
      if (wait > 0) await clock.sleep(wait, this.signal);
      if (this.execution.state !== "open") await this.execution.park();
    });
  }

  now(options: CallOptions = {}): Promise<number> {
    return this.step("now", () => this.execution.settings.clock.now(), options);
  }

  random(name = ""): () => number {
    const known = this.#streams.get(name);
    if (known) return known;
    const stream = randomStream(this.execution.settings.seed, this.key, name);
    this.#streams.set(name, stream);
    return stream;
  }

  signalled(name: string): Promise<unknown> {
    return this.#child(`signal.${name}`, {}, async (entry) => {
      if (entry.result !== undefined) return await this.execution.settings.journal.output(entry.key, entry.result);
      const given = await this.read({ kinds: ["signal"], prefix: name });
      const known = given.find((row) => row.key === name);
      const value = known ? known.value : await this.execution.awaitSignal(name);
      if (this.execution.state !== "open") return await this.execution.park();
      return await this.#recordStep(entry, value);
    });
  }

  resource<T>(token: Resource<T>): T {
    return this.execution.resource(token, this.key);
  }

  /** Rows of what was emitted and of the notes taken so far. */
  takeNotes(): Promise<NewRow[]> {
    return this.#rows([...this.#emitted, ...this.#notes]);
  }

  #rows(notes: readonly Note[]): Promise<NewRow[]> {
    const { journal } = this.execution.settings;
    return Promise.all(notes.map(({ kind, key, value }) => journal.row(kind, key, value)));
  }

  takeTally(): Record<string, number> | undefined {
    return this.#tally;
  }

  announceNotes(): void {
    for (const note of this.#notes) this.execution.event({ type: "note", ...note });
    this.#notes = [];
  }

  async #recordStep<T>(entry: Entry, made: T, emitted: readonly Note[] = []): Promise<T> {
    if (this.#closed) {
      this.execution.late(entry.key, this.attempt);
      throw this.#closed;
    }
    const { journal } = this.execution.settings;
    const text = canonicalJson(made === undefined ? null : made);
    const placed = journal.place(text);
    const value = `{"output":${typeof placed === "string" ? placed : await placed}}`;
    const metrics = emitted.length === 0 ? [] : await this.#rows(emitted);
    await journal.append([...metrics, { kind: "result", key: entry.key, value }], this.options.task.stage.phase);
    entry.result = value;
    this.progressed();
    return (typeof made === "object" ? JSON.parse(text) : made) as T;
  }

  #work<T>(name: string, options: CallOptions, body: (entry: Entry) => Promise<T>): Promise<T> {
    return this.#child(name, options, async (entry) => {
      this.#open_work++;
      try {
        return await body(entry);
      } finally {
        this.#open_work--;
      }
    });
  }

  /** A body that throws between making its calls and awaiting them must not end the process with a stray rejection. */
  #child<T>(name: string, options: CallOptions, body: (entry: Entry) => Promise<T>): Promise<T> {
    return quietly(this.#named(name, options, body));
  }

  /** Names the call, and counts it as open: a body that waits for its calls is not what a drain waits for. */
  async #named<T>(name: string, { id }: CallOptions, body: (entry: Entry) => Promise<T>): Promise<T> {
    this.#check();
    const named = this.#names.get(name) ?? { calls: 0, open: 0 };
    if (id === undefined && named.open > 0) throw this.#ambiguous(name, `${named.open} more of it open`);
    const own = segment(name, id ?? ++named.calls);
    if (this.asked.has(own)) throw this.#ambiguous(name, `'${own}' asked for already`);
    this.asked.add(own);
    this.#names.set(name, named);
    named.open++;
    if (this.#open_calls++ === 0) this.execution.leave();
    try {
      return await body(this.#entry.child(own));
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

  #check(): void {
    if (this.#closed) throw this.#closed;
  }
}
