/**
 * Writes a run's rows in group commits, and moves large values to artifacts. Reading on replay is
 * `load.ts`.
 */
import type { ArtifactRef, ArtifactStore } from "../files/artifacts.ts";
import { canonicalJson } from "../canonical.ts";
import { type Clock, systemClock } from "../clock.ts";
import { FencedError } from "../errors.ts";
import { GroupCommit } from "../stores/group_commit.ts";
import { Entry, type RoundRecord } from "./tree.ts";
import { recordedOutput, recordedValue } from "./recorded_value.ts";
import type { NewRow, RowKind, Store } from "../stores/store.ts";

/** Longer JSON moves to an artifact. Characters, near enough to bytes. */
const INLINE_MAX = 64 * 1024;
/**
 * The one field of a value that has moved. A user's value that begins like this is moved too, to
 * stay unambiguous.
 */
const MOVED = '{"$artifact":';
/** Rows per statement: bounds how much one commit holds back. */
const BATCH_ROWS_MAX = 2000;

/**
 * Called after every durable group commit, before anything sees its results.
 * @internal
 */
export type AppendFaults = { at(event: "append", phase: string): void };

type JournalOptions = {
  store: Store;
  artifacts: ArtifactStore;
  run: string;
  epoch: number;
  last_seq: number;
  clock?: Clock;
  faults?: AppendFaults;
  /** Called once, when nothing can be appended any more: fenced, or the store is broken. */
  onBroken(error: Error): void;
};

type Group = { rows: NewRow[]; phase: string; resolve(): void; reject(error: Error): void };

export class Journal {
  readonly root = new Entry("");
  /** Closed rounds that replay needs, by the loop's path; oldest first. */
  readonly rounds = new Map<string, RoundRecord[]>();
  /**
   * What was recorded up to here is from before the newest resume that opened new budgets; 0: there
   * was none.
   */
  reopened_seq = 0;
  /** The newest row known to be durable. */
  last_seq: number;
  readonly #groups = new GroupCommit<Group, Group[]>({
    // Not a microtask: what follows from one result, up to the next thing that takes time, shares a
    // commit with it.
    turn: () => this.#clock.turn(),
    load: firstRows,
    commit: (groups) => this.#commit(groups),
  });
  #broken: Error | undefined;
  /** Appends that are not durable yet, and the newest of them. */
  #unsettled = 0;
  #newest: Promise<void> = Promise.resolve();

  readonly #clock: Clock;

  constructor(readonly options: JournalOptions) {
    this.#clock = options.clock ?? systemClock;
    this.last_seq = options.last_seq;
  }

  /**
   * Appends all rows or none. Settles when they are durable; appends of one moment share a commit.
   * Rows become durable in the order of the calls.
   */
  append(rows: NewRow[], phase = "other"): Promise<void> {
    if (this.#broken) return Promise.reject(this.#broken);
    this.#unsettled++;
    this.#newest = new Promise((resolve, reject) => {
      const durable = () => {
        this.#unsettled--;
        resolve();
      };
      this.#groups.add({ rows, phase, resolve: durable, reject });
    });
    return this.#newest;
  }

  /**
   * Settles when everything appended so far is durable; null if it is. Rows that were deferred do
   * not count.
   */
  unsettled(): Promise<void> | null {
    return this.#unsettled > 0 ? this.#newest : null;
  }

  /**
   * Appends with the next commit, which it only causes if nothing else does in this turn of the
   * event loop.
   */
  defer(rows: NewRow[], phase = "other"): void {
    if (this.#broken) return;
    this.#groups.hold({ rows, phase, resolve() {}, reject() {} });
    this.#clock.pause().then(() => this.#groups.start());
  }

  /** Refuses every later append. */
  close(reason: Error): void {
    this.#broken ??= reason;
  }

  /** Settles when nothing is on its way to the store. */
  idle(): Promise<void> {
    return this.#groups.idle();
  }

  async #commit(groups: Group[]): Promise<void> {
    try {
      await this.#append(groups);
      for (const group of groups) group.resolve();
    } catch (error) {
      const first = this.#broken === undefined;
      this.#broken ??= error as Error;
      for (const group of groups) group.reject(this.#broken);
      if (first) this.options.onBroken(this.#broken);
    }
  }

  async #append(groups: Group[]): Promise<void> {
    if (this.#broken) throw this.#broken;
    const { store, run, epoch, faults } = this.options;
    const rows = groups.length === 1 ? groups[0]!.rows : groups.flatMap((group) => group.rows);
    const appended = await store.append(run, epoch, rows);
    if (appended.fenced) {
      throw new FencedError(
        `Cannot append to run '${run}' as epoch ${epoch}: another engine has taken over`,
        { run, epoch },
      );
    }
    this.last_seq = appended.last_seq;
    if (faults) {
      const phase = groups.find((group) => group.phase !== "other")?.phase ?? "other";
      faults.at("append", phase);
    }
  }

  /** The value's recorded text, or nothing if it is too long to stay in a row. */
  encodeInline(value: unknown): string | undefined {
    const text = canonicalJson(value === undefined ? null : value);
    return isLong(text) ? undefined : text;
  }

  /** What the row stores for this JSON text: the text itself, or the artifact it was written to. */
  place(text: string): string | Promise<string> {
    if (!isLong(text)) return text;
    const put = this.options.artifacts.put(new TextEncoder().encode(text));
    return put.then((ref) => JSON.stringify({ $artifact: ref }));
  }

  /** The value behind a row's parsed value. */
  fetch(value: unknown): unknown | Promise<unknown> {
    const ref = movedTo(value);
    return ref ? this.options.artifacts.getJson(ref) : value;
  }

  /** The output behind a result row's text. */
  output(key: string, result: string): unknown | Promise<unknown> {
    return this.fetch(recordedOutput(key, result));
  }

  /** A row with its value as text in it. */
  async row(kind: RowKind, key: string, value: unknown): Promise<NewRow> {
    return {
      kind,
      key,
      value: await this.place(canonicalJson(value === undefined ? null : value)),
    };
  }
}

/** As many groups as one statement takes; at least one. */
function firstRows(waiting: Group[]): { group: Group[]; rest: Group[] } {
  let rows = 0;
  const over = waiting.findIndex((group) => (rows += group.rows.length) > BATCH_ROWS_MAX);
  const count = over < 0 ? waiting.length : Math.max(over, 1);
  return { group: waiting.slice(0, count), rest: waiting.slice(count) };
}

function isLong(text: string): boolean {
  return text.length > INLINE_MAX || text.startsWith(MOVED);
}

/** A row's parsed value, from wherever it lies. */
export async function rowValue(
  artifacts: ArtifactStore,
  row: Pick<NewRow, "kind" | "key" | "value">,
): Promise<unknown> {
  const value = recordedValue(row);
  const ref = movedTo(value);
  return ref ? await artifacts.getJson(ref) : value;
}

/** The artifact that holds a recorded value, if it has moved. */
function movedTo(value: unknown): ArtifactRef | undefined {
  if (typeof value !== "object" || value === null || !("$artifact" in value)) return undefined;
  return value.$artifact as ArtifactRef;
}
