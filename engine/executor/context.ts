/** What a body gets from the executor: each operation reads or appends to the run's journal. */
import type { ArtifactStore } from "../files/artifacts.ts";
import { canonicalJson } from "../canonical.ts";
import type {
  CallOptions,
  Emission,
  Recorded,
  RecordingContext,
  StepContext,
} from "../graph/context.ts";
import { FencedError, InvalidInputError } from "../errors.ts";
import type { Execution } from "./executor.ts";
import { type Frame, type Note, rowsOf } from "./frame.ts";
import type { StageTask } from "./task.ts";
import type { Entry } from "../journal/tree.ts";
import { stillOwns } from "../stores/ownership.ts";
import { randomStream } from "./random.ts";
import { recordedMetrics } from "../journal/recorded_metrics.ts";
import { recordedValue } from "../journal/recorded_value.ts";
import type { Resource } from "../graph/resource.ts";
import { slotsOf, type Stage } from "../graph/stage.ts";
import type { ReadQuery } from "../stores/store.ts";

/** Passed in by `stage.ts`, which makes the contexts. */
type RunStage = (execution: Execution, task: StageTask) => Promise<unknown>;

export class BodyContext implements RecordingContext {
  readonly run: string;
  readonly key: string;
  readonly attempt: number;
  readonly since_attempt: number;
  readonly epoch: number;
  readonly idempotency_key: string;
  readonly artifacts: ArtifactStore;
  readonly signal: AbortSignal;
  readonly #frame: Frame;
  readonly #execution: Execution;
  readonly #runStage: RunStage;
  readonly #streams = new Map<string, () => number>();

  constructor(frame: Frame, runStage: RunStage) {
    const { execution, entry, key, attempt, signal } = frame;
    const { run, epoch, artifacts } = execution.settings;
    this.run = run;
    this.epoch = epoch;
    this.artifacts = artifacts;
    this.key = key;
    this.attempt = attempt;
    this.since_attempt = (entry.failures.at(-1)?.attempt ?? 0) + 1;
    this.idempotency_key = `${run}/${key}`;
    this.signal = signal;
    this.#frame = frame;
    this.#execution = execution;
    this.#runStage = runStage;
  }

  step<T>(
    name: string,
    fn: (step: StepContext) => Promise<T> | T,
    options: CallOptions = {},
  ): Promise<T> {
    return this.#frame.work(name, options, async (entry) => {
      if (entry.result !== undefined) return await this.#outputOf(entry) as T;
      if (this.#execution.state !== "open") return await this.#execution.park<T>();
      this.#execution.enter();
      try {
        if (this.#frame.task.stage.eager) await this.durable();
        const emitted: Note[] = [];
        const emit = (emission: Emission) => this.#emit(emission, { key: entry.key, emitted });
        const step = {
          signal: this.signal,
          key: entry.key,
          idempotency_key: `${this.run}/${entry.key}`,
          emit,
        };
        return await this.#recordStep<T>(entry, await fn(step), emitted);
      } finally {
        this.#execution.leave();
      }
    });
  }

  call<I, O>(stage: Stage<I, O>, input: NoInfer<I>, options: CallOptions = {}): Promise<O> {
    const { stage: parent, scope, after } = this.#frame.task;
    if (parent.runs_on !== "engine") {
      throw new InvalidInputError(
        `Cannot call '${stage.name}' from '${this.key}' because it holds a slot of ` +
          `'${parent.runs_on}': a stage that calls stages runs on the engine`,
      );
    }
    return this.#frame.work(stage.name, options, (entry) => {
      const slots = stage.runs_on === "engine" ? undefined : slotsOf(stage);
      const called = { entry, stage: stage as Stage, input, slots };
      const task = { ...called, scope, after, parent: this.#frame };
      return this.#runStage(this.#execution, task) as Promise<O>;
    });
  }

  emit(emission: Emission): void {
    this.#emit(emission, { key: this.key, emitted: this.#frame.emitted });
  }

  #emit(emission: Emission, { key, emitted }: { key: string; emitted: Note[] }): void {
    const { metrics, log, progress } = emission;
    if (metrics) {
      const { stage, scope: { in_round }, after } = this.#frame.task;
      const value = recordedMetrics(emission, {
        at_ms: this.#execution.settings.clock.now(),
        stage: stage.name,
        in_round,
        after,
      });
      if (value) emitted.push({ kind: "metrics", key, value });
      this.#execution.event({ type: "metrics", key, metrics });
    }
    if (log !== undefined) this.#execution.event({ type: "log", key, text: log });
    if (!progress) return;
    this.progressed();
    this.#execution.event({ type: "progress", key, ...progress });
  }

  progressed(): void {
    this.#frame.progressed();
  }

  note(name: string, key: string, value: unknown): void {
    this.#frame.check();
    this.#frame.note({ kind: `note/${name}`, key, value });
  }

  async record(kind: "recovery" | `note/${string}`, key: string, value: unknown): Promise<void> {
    this.#frame.check();
    const { journal } = this.#execution.settings;
    await journal.append([await journal.row(kind, key, value)], this.#frame.task.stage.phase);
    this.#execution.event({ type: "note", kind, key, value });
  }

  async durable(): Promise<void> {
    this.#frame.check();
    await this.#execution.settings.journal.unsettled();
  }

  recorded(): Promise<void> {
    return this.#frame.recorded();
  }

  async owned(): Promise<void> {
    this.#frame.check();
    const { run, epoch, journal } = this.#execution.settings;
    if (await stillOwns(journal.options.store, run, epoch)) return;
    this.#execution.stop(
      new FencedError(
        `Cannot continue with '${this.key}' because another engine has taken over run '${run}'`,
        { run, epoch },
      ),
    );
    this.#frame.check();
  }

  tally(counts: Record<string, number>): void {
    this.#frame.check();
    this.#frame.tally(counts);
  }

  async read(query: ReadQuery): Promise<Recorded[]> {
    const { journal } = this.#execution.settings;
    const rows = await journal.options.store.read(this.run, query);
    return await Promise.all(
      rows.map(async (row) => ({ ...row, value: await journal.fetch(recordedValue(row)) })),
    );
  }

  async checkpoint(value: unknown): Promise<void> {
    this.#frame.check();
    const { emitted, entry, task: { stage } } = this.#frame;
    const { journal } = this.#execution.settings;
    const shown = await rowsOf(emitted.splice(0), journal);
    const row = await journal.row("checkpoint", this.key, value);
    await journal.append([...shown, row], stage.phase);
    entry.checkpoints = [...entry.checkpoints, row.value];
    this.progressed();
  }

  async checkpoints(): Promise<unknown[]> {
    const { journal } = this.#execution.settings;
    return await Promise.all(
      this.#frame.entry.checkpoints.map((text) =>
        journal.fetch(recordedValue({ kind: "checkpoint", key: this.key, value: text }))
      ),
    );
  }

  sleep(ms: number, options: CallOptions = {}): Promise<void> {
    return this.#frame.child("sleep", options, async (entry) => {
      const { clock } = this.#execution.settings;
      const until_ms = entry.result === undefined
        ? await this.#recordStep(entry, clock.now() + ms)
        : await this.#outputOf(entry) as number;
      // It is longer only if the wall clock was set back since.
      const wait = Math.min(until_ms - clock.now(), ms);
      if (wait > 0) await clock.sleep(wait, this.signal);
      if (this.#execution.state !== "open") await this.#execution.park();
    });
  }

  now(options: CallOptions = {}): Promise<number> {
    return this.step("now", () => this.#execution.settings.clock.now(), options);
  }

  random(name = ""): () => number {
    const known = this.#streams.get(name);
    if (known) return known;
    const stream = randomStream(this.#execution.settings.seed, this.key, name);
    this.#streams.set(name, stream);
    return stream;
  }

  signalled(name: string): Promise<unknown> {
    return this.#frame.child(`signal.${name}`, {}, async (entry) => {
      if (entry.result !== undefined) return await this.#outputOf(entry);
      const signals = await this.read({ kinds: ["signal"], prefix: name });
      const known = signals.find((row) => row.key === name);
      const value = known ? known.value : await this.#execution.awaitSignal(name);
      if (this.#execution.state !== "open") return await this.#execution.park();
      return await this.#recordStep(entry, value);
    });
  }

  resource<T>(token: Resource<T>): T {
    return this.#execution.resource(token, this.key);
  }

  /** A child's recorded output, or a promise of it if it moved to an artifact. */
  #outputOf(entry: Entry): unknown {
    return this.#execution.settings.journal.output(entry.key, entry.result!);
  }

  async #recordStep<T>(entry: Entry, output: T, emitted: readonly Note[] = []): Promise<T> {
    const { closed } = this.#frame;
    if (closed) {
      this.#execution.late(entry.key, this.attempt);
      throw closed;
    }
    const { journal } = this.#execution.settings;
    const text = canonicalJson(output === undefined ? null : output);
    const placed = journal.place(text);
    const value = `{"output":${typeof placed === "string" ? placed : await placed}}`;
    const metrics = emitted.length === 0 ? [] : await rowsOf(emitted, journal);
    await journal.append(
      [...metrics, { kind: "result", key: entry.key, value }],
      this.#frame.task.stage.phase,
    );
    entry.result = value;
    this.progressed();
    return (typeof output === "object" ? JSON.parse(text) : output) as T;
  }
}
