/**
 * A stage as graphs and the executor see it, and what its body is given: its identity, its durable operations, its resources. They stand
 * in one file since each names the other: a body runs with a context, and a context calls stages.
 */
import type { z } from "zod";
import type { ArtifactStore } from "./artifacts.ts";
import type { Cause } from "./errors.ts";
import type { ItemIdValue } from "./keys.ts";
import type { Resource } from "./resource.ts";
import type { Needs } from "./slots.ts";
import type { JournalRow, ReadQuery } from "./store.ts";

/** A recorded row with its value parsed, and fetched if it had moved to an artifact. */
export type Recorded = Omit<JournalRow, "value"> & { value: unknown };

/** What a body tells while it works. */
export type Emission = {
  /**
   * Shown at once, and recorded as a `metrics` row: of a body with its result or its next checkpoint, of a step with the
   * step's result. What comes after that, or of an attempt that fails, is shown only.
   */
  metrics?: Record<string, number>;
  /** What the metrics are of, such as the version of a model. */
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
   * As the body's own: what is emitted here is recorded with the step, for a body that runs again
   * does not run it again.
   */
  emit(emission: Emission): void;
};

/**
 * What a stage's body has beside its input: smaller durable units, child stages, recorded time,
 * artifacts and resources.
 */
export interface Context {
  /** The run's id. */
  readonly run: string;
  /** This entry's key: `round/3/score#17`. Stable over attempts and engines. */
  readonly key: string;
  /** 1 for the first start of this body. */
  readonly attempt: number;
  /**
   * Aborted when the attempt timed out, the run was cancelled, drained to its end, or taken over.
   */
  readonly signal: AbortSignal;
  /** The same for every attempt: give it to the outside world to make a second start harmless. */
  readonly idempotency_key: string;
  /** Where large values are kept. */
  readonly artifacts: ArtifactStore;

  /**
   * A smaller durable unit: `fn` runs once, its result is recorded and returned ever after. No
   * steps inside `fn`.
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
  /** Counts that the round adds up, recorded with this stage's result. */
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
   * What the engine was given under this token: workers, rows, paths. @throws {InvalidInputError}
   * If nothing.
   */
  resource<T>(token: Resource<T>): T;
}

/**
 * What stages that ship with their own recovery have beyond `Context`: their place in the journal,
 * its rows, and when they are durable. Write it as the type of `ctx` to get it.
 */
export interface RecordingContext extends Context {
  /**
   * The first attempt without a recorded end: what an engine that died in it asked of workers is
   * still this attempt's.
   */
  readonly since_attempt: number;
  /** The engine's claim on the run: each later one has a higher epoch. */
  readonly epoch: number;

  /** Reports that the body is alive: `no_progress_ms` restarts. */
  progressed(): void;

  /** A fact of kind `note/<name>`, recorded in the same append as this stage's result. */
  note(name: string, key: string, value: unknown): void;
  /**
   * Settles when all that this body was given is durable. Bodies of stages that are not `eager`
   * start after it.
   */
  durable(): Promise<void>;
  /**
   * Settles when this attempt's result or failure is durable; never, if this engine ends before.
   * Not to be awaited by the body.
   */
  recorded(): Promise<void>;
  /**
   * Settles if this engine still owns the run, by the store. For right before a file goes that a later engine may use; it
   * may have been frozen since it recorded that.
   * @throws {FencedError} If another engine has claimed the run.
   */
  owned(): Promise<void>;
  /**
   * Recorded rows of this run. What they hold may differ on replay: decide by them only inside a
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
 * Files that a stage leaves beside its record, and what of them must come out the same when they
 * are made again.
 */
export type Leaves<O = unknown> = {
  /**
   * Whether they are there. Asked at every replay, so it looks at names and sizes; what they hold
   * is checked where they are read.
   */
  areThere(output: O, ctx: Pick<Context, "resource">): Promise<boolean>;
  identity(output: O): string;
};

/** A stage as graphs and the executor see it. I is what may be wired into it, O what comes out. */
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
  /** What it is part of; fault tests draw kill points by it. */
  readonly phase: string;
  /** Limit of one attempt. */
  readonly timeout_ms?: number;
  /** Limit between two signs of progress of one attempt. */
  readonly no_progress_ms?: number;
  /** Failures allowed until it is given up. */
  readonly attempts_max?: AttemptsMax;
  /** What a replay does if the recorded input differs. */
  readonly replay: ReplayPolicy;
  /** Its body may start before what it was given is durable. */
  readonly eager: boolean;
  /**
   * Whether a recorded output says that something in it failed: then a resume may make it again.
   */
  failed?(output: unknown): boolean;
  /** The files that it leaves beside its output. */
  readonly leaves?: Leaves;
  /** Does the work. May run again after a crash: `Context.idempotency_key` is the same then. */
  body(input: unknown, ctx: RecordingContext): Promise<unknown>;
  /** Never set: carries the types. */
  readonly types?: { input: I; output: O };
}
