/**
 * Every error that the engine throws on purpose. Messages say where, what and how to fix it
 * ("Cannot X because Y: current value is Z"); `code` is closed, `facts` is JSON-safe, and an error
 * can be recorded as JSON and shown again on replay.
 */

/** What budgets of attempts are counted by. */
export type Cause =
  | "timeout"
  | "no_progress"
  | "worker_lost"
  | "out_of_memory"
  | "infrastructure"
  | "user_code"
  | "bad_data";

export const CAUSES: readonly Cause[] = [
  "timeout",
  "no_progress",
  "worker_lost",
  "out_of_memory",
  "infrastructure",
  "user_code",
  "bad_data",
];

/** Facts must survive JSON: they are recorded with the failure. */
export type Facts = Record<string, unknown>;

/** How an error is recorded. */
export type ErrorJson = {
  code: string;
  cause_kind: Cause;
  retryable: boolean;
  message: string;
  facts: Facts;
  /** False: it costs no attempt. Absent: true. */
  counted?: false;
  /** The message of the error behind this one, if there is one. */
  because?: string;
};

/**
 * `retryable`: overrides the class's own answer. `counted: false`: something external ended the
 * process (a scheduler, an operator), so the work loses no attempt.
 */
export type EngineErrorOptions = { cause?: unknown; retryable?: boolean; counted?: boolean };

/**
 * Every error of the engine: a closed `code`, whether another try may help, and facts that can be
 * recorded.
 */
export abstract class EngineError extends Error {
  /** For programs: one of a closed list. */
  abstract readonly code: string;
  /** Which budget of attempts it is counted by. */
  abstract readonly cause_kind: Cause;
  /** Whether another try may help. */
  readonly retryable: boolean;
  /** Whether it costs the work an attempt. */
  readonly counted: boolean;
  /** What the message says, for programs. Survives JSON. */
  readonly facts: Facts;

  /** Takes the message for people and the facts for programs. */
  constructor(message: string, facts: Facts = {}, options: EngineErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.facts = facts;
    this.retryable = options.retryable ?? new.target.retries;
    this.counted = options.counted ?? true;
  }

  /** Whether trying the same thing again can help. */
  protected static readonly retries: boolean = false;

  /** The form in which it is recorded. */
  toJSON(): ErrorJson {
    const { code, cause_kind, retryable, message, facts } = this;
    const json: ErrorJson = { code, cause_kind, retryable, message, facts };
    if (!this.counted) json.counted = false;
    if (this.cause !== undefined) {
      json.because = this.cause instanceof Error ? this.cause.message : String(this.cause);
    }
    return json;
  }
}

/** Another engine owns the run: stop working on it, touch nothing. */
export class FencedError extends EngineError {
  readonly code = "fenced";
  readonly cause_kind = "infrastructure";
}

/** The graph requests something that differs from the journal. */
export class ReplayDriftError extends EngineError {
  readonly code = "replay_drift";
  readonly cause_kind = "user_code";
}

/** What was recreated differs from its record. */
export class RemadeDifferentlyError extends EngineError {
  readonly code = "redo_drift";
  readonly cause_kind = "infrastructure";
}

/** Two calls with one name are open in a scope, with no ids to distinguish them. */
export class AmbiguousKeyError extends EngineError {
  readonly code = "ambiguous_key";
  readonly cause_kind = "user_code";
}

/** A stage has used up its attempts. `facts` names its key; `cause` is the last failure. */
export class StageFailedError extends EngineError {
  readonly code = "stage_failed";
  readonly cause_kind: Cause;

  constructor(
    message: string,
    facts: Facts = {},
    options: EngineErrorOptions & { cause_kind?: Cause } = {},
  ) {
    super(message, facts, options);
    this.cause_kind = options.cause_kind ?? causeOf(options.cause);
  }
}

/** Named with a trailing underscore, since TimeoutError is a DOMException's name. */
export class TimeoutError_ extends EngineError {
  readonly code = "timeout";
  readonly cause_kind = "timeout";
  protected static override readonly retries = true;
}

/** Alive, but without progress for longer than the limit. */
export class NoProgressError extends EngineError {
  readonly code = "no_progress";
  readonly cause_kind = "no_progress";
  protected static override readonly retries = true;
}

export class WorkerLostError extends EngineError {
  readonly code = "worker_lost";
  readonly cause_kind = "worker_lost";
  protected static override readonly retries = true;
}

export class OutOfMemoryError extends EngineError {
  readonly code = "out_of_memory";
  readonly cause_kind = "out_of_memory";
  protected static override readonly retries = true;
}

/** Disk, database, network, processes: the machine, not the code and not the data. */
export class InfrastructureError extends EngineError {
  readonly code = "infrastructure";
  readonly cause_kind = "infrastructure";
  protected static override readonly retries = true;
}

/**
 * What was recorded is missing or damaged, in the journal or among the artifacts. The run can be
 * forked from before it.
 */
export class LostRecordError extends EngineError {
  readonly code = "lost_record";
  readonly cause_kind = "infrastructure";
}

export class UserCodeError extends EngineError {
  readonly code = "user_code";
  readonly cause_kind = "user_code";
}

export class BadDataError extends EngineError {
  readonly code = "bad_data";
  readonly cause_kind = "bad_data";
}

/** The totals of a closing round are wrong; the loop's audit says how. */
export class AuditError extends EngineError {
  readonly code = "audit";
  readonly cause_kind = "user_code";
}

/** Refused before anything started: exit code 2. */
export class InvalidInputError extends EngineError {
  /** For programs. */
  readonly code = "invalid_input";
  /** Counted as bad data: the same input fails the same way. */
  readonly cause_kind = "bad_data";
}

/** What should be removed is not ours or is outside our directories: it stays. */
export class RemovalRefusedError extends EngineError {
  readonly code = "removal_refused";
  readonly cause_kind = "infrastructure";
}

/** A living engine owns the run; `facts.pid` names it. Exit code 2. */
export class RunOwnedError extends EngineError {
  readonly code = "run_owned";
  readonly cause_kind = "infrastructure";
}

/** The run was cancelled. */
export class CancelledError extends EngineError {
  readonly code = "cancelled";
  readonly cause_kind = "infrastructure";
}

/** The engine stops at a durable point and the run can be resumed. */
export class DrainedError extends EngineError {
  readonly code = "drained";
  readonly cause_kind = "infrastructure";
}

const CLASSES = {
  fenced: FencedError,
  replay_drift: ReplayDriftError,
  redo_drift: RemadeDifferentlyError,
  ambiguous_key: AmbiguousKeyError,
  stage_failed: StageFailedError,
  timeout: TimeoutError_,
  no_progress: NoProgressError,
  worker_lost: WorkerLostError,
  out_of_memory: OutOfMemoryError,
  infrastructure: InfrastructureError,
  lost_record: LostRecordError,
  user_code: UserCodeError,
  bad_data: BadDataError,
  audit: AuditError,
  invalid_input: InvalidInputError,
  removal_refused: RemovalRefusedError,
  run_owned: RunOwnedError,
  cancelled: CancelledError,
  drained: DrainedError,
};

/** The closed set of codes. */
export type ErrorCode = keyof typeof CLASSES;

/**
 * Which budget an error counts against. What the engine does not know was thrown by the user's
 * code.
 */
export function causeOf(error: unknown): Cause {
  if (error instanceof EngineError) return error.cause_kind;
  if (error instanceof DOMException && error.name === "TimeoutError") return "timeout";
  return "user_code";
}

/** Any thrown value as an engine error: engine errors unchanged, everything else as `user_code`. */
export function asEngineError(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return new TimeoutError_(error.message, {}, { cause: error });
  }
  if (!(error instanceof Error)) return new UserCodeError(String(error));
  const stack = (error.stack ?? "").split("\n").slice(0, 12).join("\n");
  return new UserCodeError(`${error.name}: ${error.message}`, { stack }, { cause: error });
}

/** The JSON that is recorded for any thrown value. */
export function errorToJson(error: unknown): ErrorJson {
  return asEngineError(error).toJSON();
}

/** The error that was recorded, with its class, so that replay throws what the first run threw. */
export function errorFromJson(json: ErrorJson): EngineError {
  const code = Object.hasOwn(CLASSES, json.code) ? json.code as ErrorCode : "infrastructure";
  const { retryable, counted, cause_kind } = json;
  const options = { retryable, counted, cause: json.because, cause_kind };
  return new CLASSES[code](json.message, json.facts, options);
}
