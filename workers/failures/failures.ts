import {
  BadDataError,
  CancelledError,
  type Cause,
  type EngineError,
  InfrastructureError,
  NoProgressError,
  OutOfMemoryError,
  TimeoutError_,
  UserCodeError,
  WorkerLostError,
} from "../../engine/mod.ts";
import { type Action, type FailureKind, IMPORT_FIX, POLICY, type Role } from "./causes.ts";
import { diagnose, fingerprint, type Judged } from "./diagnosis.ts";
import type { FailureReport } from "../line/protocol.ts";

/** With these causes a worker reports that its state is unchanged. The agent has the same list. */
const MILD = new Set<FailureReport["cause"]>(["user_code", "bad_data", "cancelled", "disk_full"]);

/** Log lines that an error shows. */
const LINES_SHOWN = 12;

/** Lines of a traceback that an error shows. */
const TRACEBACK_LINES_SHOWN = 30;

const ERRORS = {
  timeout: TimeoutError_,
  no_progress: NoProgressError,
  worker_lost: WorkerLostError,
  out_of_memory: OutOfMemoryError,
  infrastructure: InfrastructureError,
  user_code: UserCodeError,
  bad_data: BadDataError,
} satisfies Record<Cause, unknown>;

/**
 * Whether the ranks say that their state is as before the operation, so that the group can
 * continue.
 */
export function leavesGroupWhole(reports: FailureReport[], ranks: number): boolean {
  return reports.length === ranks && reports.every(({ cause }) => MILD.has(cause));
}

/**
 * Where a failure happened: in operation `op`, or while the group started. `ranks`: of the group,
 * if known.
 */
export type FailurePlace = {
  run: string;
  group: string;
  generation: number;
  op?: string;
  ranks?: number;
};

/**
 * What is recorded of a failure's verdict, in `facts.failure`.
 * @internal
 */
export type FailureFacts = {
  /** null: the group hangs and no rank stands out. */
  rank: number | null;
  observed: string;
  role: Role;
  kind: FailureKind;
  cause: Cause;
  action: Action;
  /** Two failures of one fingerprint are the same failure. */
  fingerprint: string;
  /** The broken GPU, by nvidia-smi's number or the kernel's name; null: none is named. */
  device: string | null;
};

/**
 * The root failure as an engine error: the cause first, then what the other ranks said, the log's
 * last lines (of code of the user its traceback), its path and what to do next.
 */
export function failureError(reports: FailureReport[], place: FailurePlace): EngineError {
  const { ranks, ...facts } = place;
  const during = place.op === undefined ? "start" as const : "operation" as const;
  const { root, judged } = diagnose(reports, { during, ranks: ranks ?? reports.length });
  const { report, verdict } = root;
  const failure = factsOf(root, place);
  const options = { retryable: failure.action !== "stop", counted: POLICY[verdict.kind].counted };
  const Failure = report.cause === "cancelled" ? CancelledError : ERRORS[failure.cause];
  return new Failure(failureText(root, { judged, place }), {
    ...facts,
    failure,
    rank: report.rank,
    cause: report.cause,
    exception: report.exception,
    exit_code: report.exit_code,
    signal: report.signal,
    traceback: report.traceback,
    log_path: report.log_path,
    evidence: report.log_path || undefined,
    reports: judged.map(reportFacts),
  }, report.cause === "cancelled" ? {} : options);
}

function factsOf(root: Judged, place: FailurePlace): FailureFacts {
  const { kind, observed, role } = root.verdict;
  const { cause, action } = POLICY[kind];
  const { rank } = root.report;
  const device = kind === "device_fault" ? deviceOf(root) : null;
  return {
    rank,
    observed,
    role,
    kind,
    cause,
    action,
    fingerprint: fingerprint(root, place.op),
    device,
  };
}

/** The agent appends a GPU's number to the kernel's line if it knows it. */
function deviceOf({ verdict, report }: Judged): string | null {
  const text = [verdict.line ?? "", ...report.kernel].join("\n");
  return /\(gpu (\d+)\)/.exec(text)?.[1] ?? /Xid \(PCI:([0-9a-f:.]+)\)/i.exec(text)?.[1] ?? null;
}

function reportFacts(
  { report: { rank, cause, message }, verdict: { observed, role, kind } }: Judged,
) {
  return { rank, cause, observed, role, kind, message: message.slice(0, 500) };
}

type Telling = { judged: Judged[]; place: FailurePlace };

function failureText({ report, verdict }: Judged, { judged, place }: Telling): string {
  const what = place.op ? `run '${place.op}' on ${place.group}` : `start ${place.group}`;
  const exception = report.exception && !report.message.startsWith(report.exception)
    ? `${report.exception}: `
    : "";
  const lines = [
    `Cannot ${what} because rank ${report.rank} failed: ${exception}${report.message}`,
  ];
  if (verdict.line && !report.message.includes(verdict.line)) lines.push(`  seen: ${verdict.line}`);
  lines.push(...judged.filter((one) => one.report.rank !== report.rank).map(cascadeLine));
  if (verdict.kind === "user_code" && report.traceback) {
    lines.push(
      ...report.traceback.trimEnd().split("\n").slice(-TRACEBACK_LINES_SHOWN).map((line) =>
        `  | ${line}`
      ),
    );
  } else {
    lines.push(...report.log_tail.slice(-LINES_SHOWN).map((line) => `  | ${line}`));
  }
  if (report.log_path) lines.push(`  log: ${report.log_path}`);
  if (verdict.kind === "import_error") lines.push(`  fix: ${IMPORT_FIX}`);
  lines.push(`  next: ${nextCommand(verdict.kind, place.run)}`);
  return lines.join("\n");
}

const ROLE_TEXTS: Record<Role, string> = {
  root: "failed too",
  cascade: "followed",
  teardown: "was stopped with the group",
};

function cascadeLine({ report, verdict }: Judged): string {
  return `  rank ${report.rank} ${ROLE_TEXTS[verdict.role]} (${verdict.observed}): ${
    report.message.split("\n")[0]!.slice(0, 200)
  }`;
}

/**
 * The message for ranks that are alive but make no progress. The agent collects the evidence it
 * names before it kills them.
 */
export function hangText(text: string, place: FailurePlace & { log_dir: string }): string {
  const name = `${place.log_dir}/${place.group.replaceAll("/", "_")}`;
  const stacks = `  stacks of its ranks: ${name}.rank*.gen${place.generation}.log`;
  const recorder =
    `  collectives, if NCCL records them: ${name}.gen${place.generation}.flight.rank*`;
  return [text, stacks, recorder, `  next: deno task rl logs ${place.run}`].join("\n");
}

function nextCommand(kind: FailureKind, run: string): string {
  if (kind === "import_error") return "deno task rl doctor";
  return `deno task rl logs ${run}`;
}
