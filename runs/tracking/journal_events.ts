/**
 * What an engine reports of a run, derived from its journal: any process of the store can follow
 * it.
 */
import {
  type EngineEvent,
  type EngineEventBody,
  type Failure,
  type JournalRow,
  LostRecordError,
  recordedField,
  recordedRound,
  recordedValue,
  type RowKind,
  rowValue,
  type RunHead,
} from "../../engine/mod.ts";
import { foundLine, inheritedPages, type Reading } from "./run_metrics.ts";

/** Rows that are in memory at a time. */
const PAGE_ROWS = 500;
/** The newest rounds that `past` describes: more than a curve shows. */
const PAST_ROUNDS = 50;

const ROUNDS: readonly RowKind[] = ["round", "metrics"];
const NOTES: readonly RowKind[] = ["recovery", "note/evaluation"];
const STAGES: readonly RowKind[] = ["intent", "result", "failure"];

/** Rows after one number and up to another, of engines from this epoch on. */
type Range = { kinds: readonly RowKind[]; after_seq: number; up_to?: number; epoch?: number };
type Started = Extract<EngineEventBody, { type: "stage_started" }>;

/** Reads a run's journal page by page as events; each read continues where the last one ended. */
export class JournalEvents {
  /** When the newest row that was read was written, by the store's clock. */
  at_ms = 0;
  readonly #reading: Reading;
  readonly #head: RunHead;
  readonly #stages: readonly RowKind[];
  /** Stages in progress, by key. */
  readonly #open = new Map<string, Started>();
  #epoch = 0;
  #last_seq = 0;

  /** `stages`: the kinds of rows that tell which stages run; `["failure"]` only tells failures. */
  constructor(
    reading: Reading,
    head: RunHead,
    { stages = STAGES }: { stages?: readonly RowKind[] } = {},
  ) {
    this.#reading = reading;
    this.#head = head;
    this.#stages = stages;
  }

  /**
   * The state so far: all recoveries and evaluations, the newest rounds, and what is in progress.
   * How much it reads does not grow with the number of rounds, except that a fork's inherited
   * metrics are read whole.
   */
  async *past(): AsyncGenerator<EngineEvent> {
    const { store } = this.#reading;
    const run = this.#head.id;
    const { last_seq: up_to, epoch } = await store.head(run) ?? this.#head;
    const query = { kinds: [...ROUNDS.slice(0, 1)], newest_first: true, limit: PAST_ROUNDS };
    const rounds = await store.read(run, query);
    const after_seq = rounds.length < PAST_ROUNDS ? 0 : rounds.at(-1)!.seq;
    if (after_seq === 0) yield* this.#inherited();
    yield* this.#read({ kinds: NOTES, after_seq: 0, up_to: after_seq });
    yield* this.#read({ kinds: [...ROUNDS, ...NOTES], after_seq, up_to });
    // What an earlier engine had in progress is not in progress any more.
    const open_after = await this.#openAfter(rounds[0]);
    yield* this.#read({ kinds: this.#stages, after_seq: open_after, up_to, epoch });
    this.#last_seq = up_to;
  }

  /** What was recorded since the last read. */
  async *next(): AsyncGenerator<EngineEvent> {
    const kinds = [...ROUNDS, ...NOTES, ...this.#stages];
    yield* this.#read({ kinds, after_seq: this.#last_seq });
  }

  async *#inherited(): AsyncGenerator<EngineEvent> {
    for await (const page of inheritedPages(this.#reading, this.#head)) {
      for (const { line: { key, at_ms, metrics } } of page) {
        yield this.#event(at_ms, { type: "metrics", key, metrics });
      }
    }
  }

  async *#read(
    { kinds, after_seq, up_to = Infinity, epoch = 0 }: Range,
  ): AsyncGenerator<EngineEvent> {
    while (after_seq < up_to) {
      const query = { kinds: [...kinds], after_seq, limit: PAGE_ROWS };
      const rows = await this.#reading.store.read(this.#head.id, query);
      if (rows.length === 0) return;
      for (const row of rows) {
        if (row.seq <= up_to && row.epoch >= epoch) yield* this.#eventsOf(row);
      }
      after_seq = rows.at(-1)!.seq;
      if (up_to === Infinity) this.#last_seq = after_seq;
    }
  }

  /** None if the row is damaged: the others stay valid. */
  async *#eventsOf(row: JournalRow): AsyncGenerator<EngineEvent> {
    if (row.epoch > this.#epoch) {
      this.#epoch = row.epoch;
      this.#open.clear();
      const { name } = this.#head;
      const resumed = row.seq > 1;
      yield this.#event(row.at_ms, { type: "run_started", epoch: row.epoch, resumed, name });
    }
    const body = await this.#bodyOf(row).catch((error) => {
      if (error instanceof LostRecordError) return null;
      throw error;
    });
    if (body !== null) yield this.#event(row.at_ms, body);
  }

  async #bodyOf(row: JournalRow): Promise<EngineEventBody | null> {
    const { key, kind } = row;
    switch (kind) {
      case "metrics": {
        const found = await foundLine(this.#reading.artifacts, row);
        return found && { type: "metrics", key, metrics: found.line.metrics };
      }
      case "round":
        return await this.#roundOf(row);
      case "intent":
      case "result":
      case "failure":
        return this.#stageEvent(row, recordedValue(row) as Record<string, unknown>);
      default:
        return { type: "note", kind, key, value: recordedValue(row) };
    }
  }

  async #roundOf(row: JournalRow): Promise<EngineEventBody> {
    const value = await rowValue(this.#reading.artifacts, row);
    const { round, carried, tally = {}, total } = recordedRound(row, value);
    const loop = row.key.split("/").slice(0, -1).join("/");
    return { type: "round_closed", loop, round, times: this.#timesOf(loop), carried, tally, total };
  }

  /** Infinity: the recorded graph does not say. */
  #timesOf(loop: string): number {
    const times = this.#loops()?.[loop.replaceAll(/\/\d+\//g, "/*/")];
    return typeof times === "number" ? times : Infinity;
  }

  #loops(): Record<string, unknown> | null | undefined {
    try {
      return (recordedField(this.#head, "graph") as { loops?: Record<string, unknown> } | null)
        ?.loops;
    } catch (error) {
      if (error instanceof LostRecordError) return null; // Its rounds are whole.
      throw error;
    }
  }

  /** The seq after which stages may have started that are still in progress. */
  async #openAfter(newest: JournalRow | undefined): Promise<number> {
    if (newest === undefined) return 0;
    const value = await rowValue(this.#reading.artifacts, newest).catch(() => null);
    return (value as { open_after_seq?: number } | null)?.open_after_seq ?? newest.seq;
  }

  /** Null for the result of a step, or of a stage whose start was not read. */
  #stageEvent(
    { kind, key }: JournalRow,
    recorded: Record<string, unknown>,
  ): EngineEventBody | null {
    if (kind === "intent") {
      const { stage, runs_on, phase, attempt } = recorded as Started;
      const started: Started = { type: "stage_started", key, stage, runs_on, phase, attempt };
      this.#open.set(key, started);
      return started;
    }
    const started = this.#open.get(key);
    this.#open.delete(key);
    if (kind === "failure") {
      const { attempt, error, next_ms } = recorded as Failure;
      return { type: "stage_failed", key, stage: started?.stage ?? key, attempt, error, next_ms };
    }
    if (started === undefined) return null;
    const { stage, runs_on, phase } = started;
    const { ms, output } = recorded as { ms: number; output: unknown };
    return { type: "stage_finished", key, stage, runs_on, phase, ms, output };
  }

  #event(at_ms: number, body: EngineEventBody): EngineEvent {
    this.at_ms = Math.max(this.at_ms, at_ms);
    return { run: this.#head.id, at_ms, ...body };
  }
}
