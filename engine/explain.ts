/**
 * Why an entry of the journal was started, each time, and the outcome. Pure: works on rows that
 * were already read.
 */
import type { ArtifactRef } from "./files/artifacts.ts";
import type { ErrorJson } from "./errors.ts";
import { fieldTexts, partsOf } from "./executor/input_record.ts";
import { REOPENED } from "./journal/load.ts";
import { type Intent, recordedFailure, recordedIntent } from "./journal/tree.ts";
import { isUnder } from "./graph/keys.ts";
import { recordedOutput, recordedValue } from "./journal/recorded_value.ts";
import type { JournalRow } from "./stores/store.ts";

/** `other_engine`: the one that had started it ended, or was superseded, before it was done. */
export type StartReason =
  | "ready"
  | "called"
  | "failure"
  | "resume"
  | "other_engine"
  | "input_changed"
  | "asked_again";
/** A field of an input that differed the last time. */
export type ChangedField = { field: string; before: string | null; after: string | null };

/** One start of an entry, and the reason for it. */
export type Start = {
  attempt: number;
  epoch: number;
  at_ms: number;
  reason: StartReason;
  /** The failure that this start follows. */
  error: ErrorJson | null;
  /** Fields of the input that differed the last time; values, or `sha256 ...` of large ones. */
  changed: ChangedField[];
  /** `recovery` rows of this attempt: what it restored before it continued. */
  recoveries: Record<string, unknown>[];
};

/**
 * What the journal says about one entry: what it waited for, how often it started, how it ended.
 */
export type Explanation = {
  key: string;
  /** Null for a step: its function starts without a record. */
  stage: string | null;
  runs_on: string | null;
  state: "done" | "failed" | "not_done";
  /** What it waited for: the newest of what it reads, as far as that is recorded. */
  waited_for: { key: string; at_ms: number } | null;
  starts: Start[];
  result: { at_ms: number; epoch: number; ms: number | null; artifacts: ArtifactRef[] } | null;
  /** The last failure, if that is how it ended. */
  failure: ErrorJson | null;
  /** Entries that its body created. */
  children: number;
};

/**
 * `rows`: those of the run, in order of seq. `reads`: prefixes of the keys that the entry's node
 * reads.
 */
export function explain(
  rows: readonly JournalRow[],
  { key, reads }: { key: string; reads: readonly string[] },
): Explanation {
  const history = rows.filter((row) => row.key === key);
  const intents = history.filter(({ kind }) => kind === "intent");
  const last = history.findLast(({ kind }) => kind === "result" || kind === "failure");
  const result = history.findLast(({ kind }) => kind === "result");
  const failure = last?.kind === "failure" ? recordedFailure(last) : null;
  const intent = intents.at(-1) && recordedIntent(intents.at(-1)!);
  return {
    key,
    stage: intent ? `${intent.stage}@${intent.version}` : null,
    runs_on: intent?.runs_on ?? null,
    state: last?.kind === "result" ? "done" : failure?.next_ms === null ? "failed" : "not_done",
    waited_for: newestRead(rows, { reads, before: intents[0]?.seq ?? result?.seq ?? Infinity }),
    starts: intents.map((_, i) =>
      startOf(rows, { history, intents, i, isCalled: isCalled(key, rows) })
    ),
    result: result ? resultOf(result) : null,
    failure: failure?.next_ms === null ? failure.error : null,
    children:
      new Set(rows.filter((row) => row.key !== key && isUnder(row.key, key)).map((row) => row.key))
        .size,
  };
}

type Reading = { reads: readonly string[]; before: number };

function newestRead(
  rows: readonly JournalRow[],
  { reads, before }: Reading,
): Explanation["waited_for"] {
  const found = rows.findLast(({ kind, key, seq }) =>
    seq < before && (kind === "result" || kind === "round") &&
    reads.some((prefix) => isUnder(key, prefix))
  );
  return found ? { key: found.key, at_ms: found.at_ms } : null;
}

/** Whether the body of another stage requested it. */
function isCalled(key: string, rows: readonly JournalRow[]): boolean {
  const parent = key.slice(0, key.lastIndexOf("/"));
  return parent !== "" && rows.some((row) => row.kind === "intent" && row.key === parent);
}

type Starting = { history: JournalRow[]; intents: JournalRow[]; i: number; isCalled: boolean };

function startOf(rows: readonly JournalRow[], { history, intents, i, isCalled }: Starting): Start {
  const row = intents[i]!;
  const before = intents[i - 1];
  const between = history.filter(({ seq }) => before && seq > before.seq && seq < row.seq);
  const failed = between.findLast(({ kind }) => kind === "failure");
  const next = intents[i + 1]?.seq ?? Infinity;
  const changed = before && before.input_hash !== row.input_hash
    ? changedFields(recordedIntent(before), recordedIntent(row))
    : [];
  const reopened = failed &&
    rows.some(({ kind, key, seq }) =>
      kind === "recovery" && key === REOPENED && seq > failed.seq && seq < row.seq
    );
  const reason = (): StartReason => {
    if (!before) return isCalled ? "called" : "ready";
    if (before.input_hash !== row.input_hash) return "input_changed";
    if (failed) return reopened ? "resume" : "failure";
    return before.epoch !== row.epoch && !between.some(({ kind }) => kind === "result")
      ? "other_engine"
      : "asked_again";
  };
  const recoveries = history.filter(({ kind, seq }) =>
    kind === "recovery" && seq > row.seq && seq < next
  );
  return {
    attempt: recordedIntent(row).attempt,
    epoch: row.epoch,
    at_ms: row.at_ms,
    reason: reason(),
    error: failed ? recordedFailure(failed).error : null,
    changed,
    recoveries: recoveries.map((one) => recordedValue(one) as Record<string, unknown>),
  };
}

const SHOWN_MAX = 200;

function changedFields(before: Intent, after: Intent): ChangedField[] {
  const large = before.parts !== undefined || after.parts !== undefined;
  const [old, now] = [before, after].map((intent) =>
    large ? intent.parts ?? partsOf(intent.input) : fieldTexts(intent.input)
  );
  const shown = (text: string | undefined) =>
    text === undefined ? null : large ? `sha256 ${text}` : text.slice(0, SHOWN_MAX);
  return [...new Set([...Object.keys(old!), ...Object.keys(now!)])].filter((field) =>
    old![field] !== now![field]
  )
    .map((field) => ({ field, before: shown(old![field]), after: shown(now![field]) }));
}

function resultOf(row: JournalRow): Explanation["result"] {
  const output = recordedOutput(row.key, row.value);
  const { ms = null } = recordedValue(row) as { ms?: number };
  const artifacts = new Map(artifactsIn(output).map((ref) => [ref.sha256, ref]));
  return { at_ms: row.at_ms, epoch: row.epoch, ms, artifacts: [...artifacts.values()] };
}

function artifactsIn(value: unknown): ArtifactRef[] {
  if (typeof value !== "object" || value === null) return [];
  const { sha256, bytes, ...rest } = value as Partial<ArtifactRef>;
  const isRef = typeof sha256 === "string" && typeof bytes === "number" &&
    Object.keys(rest).length === 0;
  if (isRef) return [{ sha256, bytes }]; // With a path beside them they name a file of a directory.
  return Object.values(value).flatMap(artifactsIn);
}
