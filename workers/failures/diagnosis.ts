import { ADVICE, type FailureKind, type Role, type Sign, SIGNS, TEXTLESS } from "./causes.ts";
import type { FailureReport } from "../line/protocol.ts";

/** What one process left behind. A FailureReport adds when it happened. */
export type Evidence =
  & Pick<
    FailureReport,
    "cause" | "exception" | "message" | "exit_code" | "signal" | "kernel" | "oom_kills"
  >
  & {
    /** Its log's last lines, and those before them that look like errors. */
    log: string[];
    /** While ranks started, or in an operation. */
    during: "start" | "operation";
  };

type Verdict = {
  /** The sign that was seen: a row of `SIGNS`. */
  observed: string;
  kind: FailureKind;
  role: Role;
  /** Ranks that the text names as those at fault. */
  culprits: number[];
  /** The line it was read from, if there is one. */
  line: string | null;
};

/**
 * What a log may say about the machine besides an exception. Its other lines may come from an
 * earlier failure.
 */
const MACHINE = new Set<FailureKind>(["device_fault", "device_memory", "host_memory", "disk_full"]);

/** Reads the evidence of one process. Pure. */
export function classify(evidence: Evidence): Verdict {
  const known = workerVerdict(evidence) ?? kernelWord(evidence);
  if (known) return known;
  const textMatch = textSign([textOf(evidence)], evidence);
  if (textMatch && !textMatch.sign.see_log) return matched(textMatch);
  const end = endWord(evidence);
  if (end) return end;
  const logged = textSign(evidence.log, evidence);
  const counts = logged && (evidence.exception === null || MACHINE.has(logged.sign.kind));
  if (counts) return matched(logged);
  return textMatch ? matched(textMatch) : lastResort(evidence);
}

const textless = (observed: keyof typeof TEXTLESS, role: Role = "root"): Verdict => ({
  observed,
  kind: TEXTLESS[observed]!,
  role,
  culprits: [],
  line: null,
});

/** What the worker itself is sure of: it knows whose code ran and whether its state is intact. */
function workerVerdict({ cause, message, during }: Evidence): Verdict | null {
  if (cause === "user_code") return textless("told_user_code");
  if (cause === "cancelled") return textless("told_cancelled", "teardown");
  if (cause === "import_error") return textless("told_import_error");
  if (cause === "disk_full") return textless("told_disk_full");
  if (cause !== "bad_data") return null;
  if (/^non_finite:/.test(message)) return textless("non_finite");
  const damaged = SIGNS.find(({ name }) => name === "checkpoint_unreadable")!;
  if (during === "operation" && damaged.text.test(message)) {
    return matched({ sign: damaged, line: message });
  }
  return textless("told_bad_data");
}

/** The kernel's log, and its count of out-of-memory kills, know more than the process could say. */
function kernelWord({ kernel, oom_kills, ...evidence }: Evidence): Verdict | null {
  const seen = textSign(kernel, evidence);
  if (seen) return matched(seen);
  return endOf(evidence) === "SIGKILL" && (oom_kills ?? 0) > 0
    ? textless("oom_kill_counted")
    : null;
}

function textOf({ exception, message }: Evidence): string {
  return exception ? `${exception}: ${message}` : message;
}

type Seen = { sign: Sign; line: string };

/** The first row that any line matches. */
function textSign(texts: string[], evidence: Pick<Evidence, "during">): Seen | null {
  const lines = texts.flatMap((text) => text.split("\n")).filter((line) => !ADVICE.test(line));
  for (const sign of SIGNS) {
    if (sign.during !== undefined && sign.during !== evidence.during) continue;
    const line = lines.find((line) => sign.text.test(line));
    if (line !== undefined) return { sign, line };
  }
  return null;
}

function matched({ sign: { name, kind, role, names }, line }: Seen): Verdict {
  const named = names?.exec(line)?.[1]?.match(/\d+/g) ?? [];
  return { observed: name, kind, role, culprits: named.map(Number), line: line.trim() };
}

const CRASHES = new Set(["SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGSYS", "SIGTRAP"]);
/** Shells and schedulers report a signal as 128 plus its number. */
const SIGNAL_EXITS: Record<number, string> = {
  132: "SIGILL",
  134: "SIGABRT",
  135: "SIGBUS",
  136: "SIGFPE",
  137: "SIGKILL",
  138: "SIGUSR1",
  139: "SIGSEGV",
  143: "SIGTERM",
};

function endOf({ signal, exit_code }: Pick<Evidence, "signal" | "exit_code">): string | null {
  return signal ?? SIGNAL_EXITS[exit_code ?? 0] ?? null;
}

/** Ends that need no text. A crash is not one of them: its log says why. */
function endWord(evidence: Evidence): Verdict | null {
  const { cause, exception, oom_kills } = evidence;
  if (exception === "MemoryError") return textless("memory_error");
  if (cause === "timeout") return textless("told_timeout");
  const end = endOf(evidence);
  if (cause === "out_of_memory") return textless(end ? "oom_kill_counted" : "told_out_of_memory");
  if (end === "SIGTERM" || end === "SIGUSR1") return textless("sigterm");
  // A process cannot log its own SIGKILL, so older lines do not explain it.
  if (end === "SIGKILL") return textless(oom_kills === null ? "sigkill_unexplained" : "sigkill");
  return null;
}

function lastResort(evidence: Evidence): Verdict {
  const end = endOf(evidence);
  if (end && CRASHES.has(end)) return textless("crash_signal");
  if (evidence.exception === null && evidence.exit_code !== null) return textless("exit_code");
  return textless("exception");
}

/** A failure report with its verdict. */
export type Judged = { report: FailureReport; verdict: Verdict };

type Diagnosis = {
  root: Judged;
  /** Every report, the root too, in rank order. */
  judged: Judged[];
};

/** What is known besides the reports. */
type Scene = {
  during: Evidence["during"];
  /** Of the group. A silent rank that others wait for is the one that hangs. */
  ranks: number;
};

/**
 * Judges every rank's report and picks the root: the rank at fault, not those that lost it or
 * waited for it. In this order: one whose report is first-hand (a rank that others name before one
 * that they do not, then the earliest); the silent rank that others waited for; a rank that others
 * name; the earliest of what is left, teardown last.
 */
export function diagnose(reports: FailureReport[], scene: Scene): Diagnosis {
  if (reports.length === 0) {
    throw new RangeError("Cannot diagnose a failure because there is no report");
  }
  const judged = reports.map((report) => ({
    report,
    verdict: classify(evidenceOf(report, scene)),
  }));
  const named = new Set(judged.flatMap(({ verdict }) => verdict.culprits));
  const silent = silentRank(judged, { scene, named });
  const all = silent ? [...judged, silent] : judged;
  const of = (role: Role) => all.filter(({ verdict }) => verdict.role === role);
  const accused = (list: Judged[]) => list.filter(({ report }) => named.has(report.rank));
  const root = [accused(of("root")), of("root"), accused(all), of("cascade"), all].map(earliest)
    .find((one) => one)!;
  const shown = all.map((one): Judged => {
    if (one === root) return { ...one, verdict: { ...one.verdict, role: "root" } };
    return one;
  });
  return {
    root: shown[all.indexOf(root)]!,
    judged: shown.toSorted((a, b) => a.report.rank - b.report.rank),
  };
}

function evidenceOf(report: FailureReport, { during }: Scene): Evidence {
  return { ...report, log: [...report.log_errors, ...report.log_tail], during };
}

function earliest(judged: Judged[]): Judged | undefined {
  return judged.toSorted((a, b) =>
    a.report.at_ms - b.report.at_ms || a.report.rank - b.report.rank
  )[0];
}

type Waiting = { scene: Scene; named: Set<number> };

/** The rank without a report, if every other one only says that it lost or missed somebody. */
function silentRank(judged: Judged[], { scene, named }: Waiting): Judged | null {
  if (judged.some(({ verdict }) => verdict.role === "root")) return null;
  const spoke = new Set(judged.map(({ report }) => report.rank));
  const silent = Array.from({ length: scene.ranks }, (_, rank) => rank).filter((rank) =>
    !spoke.has(rank)
  );
  const rank = silent.find((rank) => named.has(rank)) ?? silent[0];
  if (rank === undefined) return null;
  const waited = judged[0]!.report;
  const message = `It said nothing while ${
    judged.length === 1 ? "another rank" : `${judged.length} ranks`
  } waited for it`;
  const report = {
    ...waited,
    rank,
    cause: "timeout" as const,
    exception: null,
    message,
    traceback: null,
  };
  const rest = { exit_code: null, signal: null, log_tail: [], log_errors: [], log_path: "" };
  return { report: { ...report, ...rest }, verdict: textless("silent_rank") };
}

/**
 * Identifies a failure: the sign, the operation, and the text without its variable parts. Budgets
 * count by it.
 */
export function fingerprint({ report, verdict }: Judged, op: string | undefined): string {
  const text = (verdict.line ?? textOf({ ...report, log: [], during: "operation" }))
    .replace(/0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+(\.\d+)?/gi, "#").replace(/\s+/g, " ").trim().slice(
      0,
      160,
    );
  return [verdict.observed, op ?? "start", text].join("|");
}
