/**
 * A stage as seen by graphs and the executor, and what its body receives: its identity, its durable
 * operations, its resources. Both are in this file because each refers to the other: a body runs
 * with a context, and a context calls stages.
 */
import type { z } from "zod";
import type { ArtifactStore } from "../files/artifacts.ts";
import type { Cause } from "../errors.ts";
import type { ItemIdValue } from "./keys.ts";
import type { Resource } from "./resource.ts";
import type { Needs } from "./slots.ts";
import type { JournalRow, ReadQuery } from "../stores/store.ts";

/** A recorded row with its value parsed, and fetched if it had moved to an artifact. */
export type Recorded = Omit<JournalRow, "value"> & { value: unknown };

/** What a body reports while it works. */
export type Emission = {
  /**
   * Shown immediately, and recorded as a `metrics` row: a body's with its result or its next
   * checkpoint, a step's with the step's result. Later metrics, and those of a failed attempt, are
   * only shown.
   */
  metrics?: Record<string, number>;
  /** What the metrics measure, such as the version of a model. */
  version?: string;
  log?: string;
  progress?: { done: number; total?: number; phase?: string };
};

/** `id` makes a call's key independent of the order in which calls are made. */
export type CallOptions = { id?: ItemIdValue };

/** Handed to the function of a step. */
export type StepContext = {
  signal: AbortSignal;
  idempotency_key: string;
  key: string;
  /**
   * Like the body's `emit`, but recorded with the step, because a body that runs again does not
   * repeat the step.
   */
  emit(emission: Emission): void;
};

/**
 * What a stage's body uses besides its input: smaller durable units, child stages, recorded time,
 * artifacts and resources.
 */
export interface Context {
  /** The run's id. */
  readonly run: string;
  /** This entry's key: `round/3/score#17`. Stable over attempts and engines. */
  readonly key: string;
  /** 1 for the first start of this body. */
  readonly attempt: number;
  /** Aborted when the attempt times out, or the run is cancelled, drained or taken over. */
  readonly signal: AbortSignal;
  /** The same for every attempt: pass it to external services to make a second start harmless. */
  readonly idempotency_key: string;
  /** Where large values are kept. */
  readonly artifacts: ArtifactStore;

  /**
   * A smaller durable unit: `fn` runs once, and its recorded result is returned from then on. `fn`
   * must not contain steps.
   */
  step<T>(
    name: string,
    fn: (step: StepContext) => Promise<T> | T,
    options?: CallOptions,
  ): Promise<T>;
  /** Runs another stage as a child of this one. The caller must run on the engine. */
  call<I, O>(stage: Stage<I, O>, input: NoInfer<I>, options?: CallOptions): Promise<O>;

  /**
   * Streams to the engine's `onEvent`, and records metrics. Never blocks; logs may lose their tail;
   * progress resets `no_progress_ms`.
   */
  emit(emission: Emission): void;
  /** Counts that the round sums, recorded with this stage's result. */
  tally(counts: Record<string, number>): void;
  /** A fact recorded now; durable when the promise settles. */
  record(kind: "recovery" | `note/${string}`, key: string, value: unknown): Promise<void>;

  /** Sleeps until a recorded moment: a restart does not start the wait again. */
  sleep(ms: number, options?: CallOptions): Promise<void>;
  /** The recorded time of the first call: the same on replay. Milliseconds. */
  now(options?: CallOptions): Promise<number>;
  /** A stream of numbers in [0, 1) derived from (seed, key, name): the same for every attempt. */
  random(name?: string): () => number;
  /** Waits until a person (or another program) gives the signal; returns its value. */
  signalled(name: string): Promise<unknown>;

  /**
   * What was provided to the engine under this token: workers, rows, paths.
   * @throws {InvalidInputError} If nothing was.
   */
  resource<T>(token: Resource<T>): T;
}

/**
 * What stages with their own recovery use beyond `Context`: their place in the journal, its rows,
 * and when they are durable. Declare `ctx` with this type to use it.
 */
export interface RecordingContext extends Context {
  /**
   * The first attempt without a recorded end: what an engine asked of workers before it died in
   * that attempt still belongs to this one.
   */
  readonly since_attempt: number;
  /** The engine's claim on the run: each later one has a higher epoch. */
  readonly epoch: number;

  /** Reports that the body is alive: `no_progress_ms` restarts. */
  progressed(): void;

  /** A fact of kind `note/<name>`, recorded in the same append as this stage's result. */
  note(name: string, key: string, value: unknown): void;
  /**
   * Settles when everything this body received is durable. Bodies of stages that are not `eager`
   * start after that.
   */
  durable(): Promise<void>;
  /**
   * Settles when this attempt's result or failure is durable; never if this engine ends first. The
   * body must not await it.
   */
  recorded(): Promise<void>;
  /**
   * Settles if the store says that this engine still owns the run. Call it right before removing a
   * file that a later engine may use: this process may have been frozen since it recorded the
   * removal.
   * @throws {FencedError} If another engine has claimed the run.
   */
  owned(): Promise<void>;
  /**
   * Recorded rows of this run. They may differ on replay: base decisions on them only inside a
   * step.
   */
  read(query: ReadQuery): Promise<Recorded[]>;

  /** Durable progress inside this entry, kept over attempts, workers and engines. */
  checkpoint(value: unknown): Promise<void>;
  /** What `checkpoint` recorded so far, oldest first. */
  checkpoints(): Promise<unknown[]>;
}

/**
 * `error`: stop and show the difference. `rerun`: drop what was recorded, run again. `accept`: keep
 * what was recorded.
 */
export type ReplayPolicy = "error" | "rerun" | "accept";

/**
 * Failures allowed until a stage is given up: one number for every cause, or by cause (the rest
 * keep their default).
 */
export type AttemptsMax = number | Partial<Record<Cause, number>>;

/**
 * Files that a stage writes besides its record, and what must be identical when they are recreated.
 */
export type Leaves<O = unknown> = {
  /**
   * Whether the files exist. Called at every replay, so it checks names and sizes; contents are
   * checked when they are read.
   */
  areThere(output: O, ctx: Pick<Context, "resource">): Promise<boolean>;
  identity(output: O): string;
};

/**
 * What a fork does with a stage's record if the child would request something different. Without a
 * policy, what the forked loop starts from must not change.
 */
export type ForkPolicy = {
  /**
   * The child's configuration may change its input. Its record stays, because rounds were computed
   * from it; before the first round it runs again.
   */
  keeps?: boolean;
  /**
   * The child runs it again if it would request something different: the new output applies from
   * the child's first round.
   */
  anew?: boolean;
  /**
   * Names what it reads besides its input. If the child reads something different under this name,
   * nothing that it recorded is copied.
   */
  reads?: string;
};

/** A stage as seen by graphs and the executor. I is what may be wired into it, O is its output. */
export interface Stage<I = unknown, O = unknown> {
  /** Names it in the journal, unique in its graph. */
  readonly name: string;
  /** Raised when the output changes meaning: older records then do not replay. */
  readonly version: number;
  /** What its body takes; checked before each attempt. */
  readonly input: z.ZodType;
  /** What its body returns; checked before it is recorded. */
  readonly output: z.ZodType;
  /** The worker group that its tasks run on, or `engine`. */
  readonly runs_on: string;
  /** Slots that a task holds, all or none; one of `runs_on` by default. */
  readonly slots?: Needs;
  /** The phase it belongs to; fault tests choose kill points by it. */
  readonly phase: string;
  /** Limit of one attempt. */
  readonly timeout_ms?: number;
  /** Limit between two signs of progress of one attempt. */
  readonly no_progress_ms?: number;
  /** Failures allowed before it is given up. */
  readonly attempts_max?: AttemptsMax;
  /** What a replay does if the recorded input differs. */
  readonly replay: ReplayPolicy;
  /** Its body may start before its input is durable. */
  readonly eager: boolean;
  /** Whether a recorded output says that something in it failed: then a resume may redo it. */
  failed?(output: unknown): boolean;
  /** The files that it writes besides its output. */
  readonly leaves?: Leaves;
  /** What a fork does with its record. */
  readonly fork?: ForkPolicy;
  /** Does the work. May run again after a crash: `Context.idempotency_key` is the same then. */
  body(input: unknown, ctx: RecordingContext): Promise<unknown>;
  /** Never set: carries the types. */
  readonly types?: { input: I; output: O };
}
