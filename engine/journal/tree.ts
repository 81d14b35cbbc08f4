/**
 * A run's journal as a tree of entries by key segment. Holds open scopes only: closed rounds are
 * dropped.
 */
import type { ErrorJson } from "../errors.ts";
import { joinKey } from "../graph/keys.ts";
import { damagedRow, recordedValue } from "./recorded_value.ts";
import type { JournalRow, NewRow } from "../stores/store.ts";

/** Value of a `failure` row. `next_ms`: wall time of the next attempt; null: given up. */
export type Failure = { attempt: number; error: ErrorJson; next_ms: number | null };

/**
 * Value of an `intent` row. `input` is present if it is small, else `parts`: a hash per field, to
 * show a difference.
 */
export type Intent = {
  stage: string;
  version: number;
  runs_on: string;
  phase: string;
  attempt: number;
  input?: unknown;
  parts?: Record<string, string>;
};

/** The value of an `intent` row. @throws {LostRecordError} If it is damaged. */
export function recordedIntent(row: Pick<NewRow, "kind" | "key" | "value">): Intent {
  const intent = recordedValue(row) as Partial<Intent> | null;
  if (typeof intent?.stage !== "string" || typeof intent.attempt !== "number") {
    throw damagedRow(row);
  }
  return intent as Intent;
}

/** The value of a `failure` row. @throws {LostRecordError} If it is damaged. */
export function recordedFailure(row: Pick<NewRow, "kind" | "key" | "value">): Failure {
  const failure = recordedValue(row) as Partial<Failure> | null;
  if (typeof failure?.error?.code !== "string" || failure.next_ms === undefined) {
    throw damagedRow(row);
  }
  return failure as Failure;
}

/** Value of a `round` row. `total`: tallies of this loop's rounds up to this one. */
export type RoundRecord = {
  round: number;
  carried: Record<string, unknown>;
  tally: Record<string, number>;
  total: Record<string, number>;
  graph_hash: string;
  until: boolean;
  /** No row at or below this seq belongs to a later round: replay starts reading here. */
  open_after_seq: number;
};

/**
 * The value of a `round` row; `value`: what it refers to, if it has moved to an artifact.
 * @throws {LostRecordError} If its value is damaged.
 */
export function recordedRound(
  row: Pick<NewRow, "kind" | "key" | "value">,
  value: unknown = recordedValue(row),
): RoundRecord {
  const { round, carried, total } = (value ?? {}) as Partial<RoundRecord>;
  const blocks = [carried, total].every((one) => typeof one === "object" && one !== null);
  if (typeof round !== "number" || !blocks) throw damagedRow(row);
  return value as RoundRecord;
}

/** Causes that a person removes, not time. */
const MENDED_BY_HAND = new Set(["user_code", "bad_data"]);

const NO_CHILDREN: ReadonlyMap<string, Entry> = new Map();
const NONE: readonly never[] = [];

/** One key of the journal. Values stay JSON text until they are read. */
export class Entry {
  /** Created on demand, like the lists below: most entries are steps, and there are many. */
  #children: Map<string, Entry> | undefined;
  /** Attempts started so far, over all engines. */
  attempts = 0;
  input_hash?: string;
  intent?: string;
  result?: string;
  failures: readonly Failure[] = NONE;
  checkpoints: readonly string[] = NONE;
  /** Seq of the result, else of the newest intent; Infinity: recorded by this engine. */
  recorded_seq = Infinity;
  /**
   * It was given up before the resume that opened new budgets, because of the user's code or data.
   */
  was_given_up = false;
  /** Its output says that something failed, and no stage has accepted it: it is retried. */
  tried_again = false;
  /** Its input comes from something that is or was retried, so it may be new. */
  may_change = false;

  constructor(readonly key: string) {}

  get children(): ReadonlyMap<string, Entry> {
    return this.#children ?? NO_CHILDREN;
  }

  child(segment: string): Entry {
    const known = this.#children?.get(segment);
    if (known) return known;
    const child = new Entry(joinKey(this.key, segment));
    this.#children ??= new Map();
    this.#children.set(segment, child);
    return child;
  }

  /** Forgets one child, or all. */
  drop(segment?: string): void {
    if (segment === undefined) this.#children = undefined;
    else this.#children?.delete(segment);
  }

  /** The entry at a path below this one, created if missing. */
  at(path: string): Entry {
    if (path === "") return this;
    const cut = path.indexOf("/");
    return cut < 0 ? this.child(path) : this.child(path.slice(0, cut)).at(path.slice(cut + 1));
  }

  /**
   * Takes a row of this key. Failures up to `reopened_seq` belong to the budget before the newest
   * resume.
   */
  take(row: JournalRow, reopened_seq: number): void {
    switch (row.kind) {
      case "intent":
        // It started again with a different input: the previous results no longer count.
        if (this.result !== undefined && this.input_hash !== row.input_hash) this.forget();
        if (this.result === undefined) this.recorded_seq = row.seq;
        this.attempts++;
        this.input_hash = row.input_hash;
        this.intent = row.value;
        break;
      case "result":
        this.recorded_seq = row.seq;
        this.input_hash = row.input_hash;
        this.result = row.value;
        break;
      case "failure":
        this.#takeFailure(recordedFailure(row), row.seq > reopened_seq);
        break;
      case "checkpoint":
        this.checkpoints = [...this.checkpoints, row.value];
        break;
    }
  }

  #takeFailure(failure: Failure, counts: boolean): void {
    if (counts) this.failures = [...this.failures, failure];
    else if (failure.next_ms === null && MENDED_BY_HAND.has(failure.error.cause_kind)) {
      this.was_given_up = true;
    }
  }

  /** Forgets what was recorded here and below: the entry runs again. */
  forget(): void {
    this.drop();
    this.result = undefined;
    this.recorded_seq = Infinity;
    this.tried_again = false;
    this.failures = NONE;
    this.checkpoints = NONE;
  }

  /** Tallies of the results here and below. */
  tally(into: Record<string, number> = {}): Record<string, number> {
    if (this.result !== undefined) addTally(into, tallyOf(this.key, this.result));
    for (const child of this.children.values()) child.tally(into);
    return into;
  }
}

/**
 * A result's tally, without parsing the output of results that have none: the tally is written
 * first.
 */
function tallyOf(key: string, result: string): Record<string, number> {
  if (!result.startsWith('{"tally":')) return {};
  return (recordedValue({ kind: "result", key, value: result }) as {
    tally: Record<string, number>;
  }).tally;
}

export function addTally(
  into: Record<string, number>,
  counts: Record<string, number>,
): Record<string, number> {
  for (const [name, count] of Object.entries(counts)) into[name] = (into[name] ?? 0) + count;
  return into;
}
