import {
  BadDataError,
  CancelledError,
  type EngineError,
  InfrastructureError,
  OutOfMemoryError,
  TimeoutError_,
  UserCodeError,
  WorkerLostError,
} from "../engine/mod.ts";
import type { FailureReport } from "./protocol.ts";

/** What a rank says when it is not the one at fault: its peer went, or it waited for one that hangs. */
const SECOND_HAND = new Set<FailureReport["cause"]>(["peer", "timeout", "cancelled"]);

/** The worker says with these that its state is as before the operation. The agent has the same list. */
const MILD = new Set<FailureReport["cause"]>(["user_code", "bad_data", "cancelled"]);

/** Log lines that an error shows. */
const LINES_SHOWN = 12;

const ERRORS = {
  exit: WorkerLostError,
  signal: WorkerLostError,
  peer: WorkerLostError,
  timeout: TimeoutError_,
  out_of_memory: OutOfMemoryError,
  user_code: UserCodeError,
  bad_data: BadDataError,
  import_error: InfrastructureError,
  cancelled: CancelledError,
  other: InfrastructureError,
} satisfies Record<FailureReport["cause"], unknown>;

/** The report that explains the others: one that is not second-hand before one that is, then the earliest. */
export function rootFailure(reports: FailureReport[]): FailureReport {
  const first = (candidates: FailureReport[]) =>
    candidates.reduce<FailureReport | null>((best, report) => !best || report.at_ms < best.at_ms ? report : best, null);
  const root = first(reports.filter((report) => !SECOND_HAND.has(report.cause))) ?? first(reports);
  if (!root) throw new RangeError("Cannot pick a root as there is no failure report");
  return root;
}

/** Whether the ranks say that their state is as before the operation, so that the group can go on. */
export function leavesGroupWhole(reports: FailureReport[], ranks: number): boolean {
  return reports.length === ranks && reports.every(({ cause }) => MILD.has(cause));
}

/** Where a failure happened: in operation `op`, or while the group started. */
export type FailurePlace = { run: string; group: string; generation: number; op?: string };

/** The root failure as an engine error: the cause first, then the log's last lines, its path and what to do next. */
export function failureError(reports: FailureReport[], place: FailurePlace): EngineError {
  const root = rootFailure(reports);
  const what = place.op ? `run '${place.op}' on ${place.group}` : `start ${place.group}`;
  const said = root.exception && !root.message.startsWith(root.exception) ? `${root.exception}: ` : "";
  const lines = [`Cannot ${what} as rank ${root.rank} failed: ${said}${root.message}`];
  lines.push(...root.log_tail.slice(-LINES_SHOWN).map((line) => `  | ${line}`));
  if (root.log_path) lines.push(`  log: ${root.log_path}`);
  lines.push(`  next: ${nextCommand(root, place.run)}`);
  const facts = {
    ...place,
    rank: root.rank,
    cause: root.cause,
    exception: root.exception,
    exit_code: root.exit_code,
    signal: root.signal,
    traceback: root.traceback,
    log_path: root.log_path,
    reports: reports.map(({ rank, cause, message }) => ({ rank, cause, message: message.slice(0, 500) })),
  };
  // The same import fails the same way: trying again would only hide the sentence that says why.
  const options = root.cause === "import_error" ? { retryable: false } : {};
  return new ERRORS[root.cause](lines.join("\n"), facts, options);
}

/** The words for ranks that are alive and do not get on: the agent writes their stacks into their logs before it kills them. */
export function hangText(text: string, place: FailurePlace & { logDir: string }): string {
  const name = `${place.group.replaceAll("/", "_")}.rank*.gen${place.generation}.log`;
  return `${text}\n  stacks of its ranks: ${place.logDir}/${name}\n  next: deno task rl logs ${place.run}`;
}

function nextCommand(root: FailureReport, run: string): string {
  if (root.cause === "import_error") return "deno task rl doctor";
  return `deno task rl logs ${run}`;
}
