import type { ArtifactStore } from "../engine/mod.ts";
import type { FailureReport } from "../workers/mod.ts";

/** What a scripted operation gets besides its arguments. */
export type FakeIO = {
  key: string;
  attempt: number;
  group: string;
  generation: number;
  /** Aborted when the engine cancels the operation, or the group ends. */
  signal: AbortSignal;
  progress(phase: string, done: number, total?: number): void;
  /** Delivered with the result. Returns its index. */
  blob(data: Uint8Array): number;
};

/**
 * An operation of a fake worker: what it returns is rank 0's output; what it throws becomes an
 * `error` message.
 */
export type FakeOperation = (args: unknown, io: FakeIO) => unknown;

/** What a fake agent does, step by step: the same script runs against the real one. */
export type FakeScript = {
  /** By role, then by operation. */
  operations: Record<string, Record<string, FakeOperation>>;
  /** What rank 0 says of itself when ready, by role. */
  info?: Record<string, Record<string, unknown>>;
  /** The GPUs of its host, as its hello announces them. Default: none. */
  gpus?: string[];
  /** Where arguments are that were too long for their message. */
  artifacts?: Pick<ArtifactStore, "get">;
  /** Failures of a start, instead of becoming ready. */
  failStart?: (group: string, generation: number) => FailureReport[] | null;
};

/** A thrown failure with an explicit cause; any other thrown value is `other`. */
export class FakeFailure extends Error {
  /** What each rank says of it. */
  readonly reports: FailureReport[];
  /** One report for each rank that says something; what is left out of a report has a default. */
  constructor(...reports: Partial<FailureReport>[]) {
    super(reports[0]?.message ?? "scripted failure");
    this.reports = reports.map((report) => failureReport(report));
  }
}

/** A FailureReport with every field. */
export function failureReport(report: Partial<FailureReport>): FailureReport {
  return {
    rank: 0,
    cause: "other",
    exception: null,
    message: "scripted failure",
    traceback: null,
    exit_code: null,
    signal: null,
    log_tail: [],
    log_errors: [],
    kernel: [],
    oom_kills: null,
    log_path: "",
    at_ms: 0,
    ...report,
  };
}
