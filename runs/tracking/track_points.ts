/**
 * What trackers receive of a run, derived from its journal: one point for each closed round, and
 * one for each emission outside the loops. The same journal always gives the same points.
 */
import { isUnder, type JournalRow, type RunHead } from "../../engine/mod.ts";
import {
  type FoundLine,
  foundLine,
  inheritedPages,
  type MetricsLine,
  type Reading,
} from "./run_metrics.ts";

/** The values of metrics at a step. */
export type TrackPoint = {
  /** From 1, without gaps. */
  number: number;
  /**
   * How many rounds were closed, over all loops: a point of a round counts its own. Outside loops
   * it counts those of the loops that the point comes after, whatever else runs beside it.
   */
  step: number;
  /** The round of the point; null outside loops. */
  round: { loop: string; round: number } | null;
  at_ms: number;
  metrics: Record<string, number>;
};

/** Rows that are in memory at a time. */
const PAGE_ROWS = 1000;

/** Several values of a round are summed: times and tokens of slabs. Else the last one counts. */
const SUMMED = /^time\/|_tokens$/;

type OpenRound = Pick<TrackPoint, "at_ms" | "metrics">;
/** `after`: as recorded; absent if the row is damaged. */
type Outside = OpenRound & Pick<MetricsLine, "after">;

/** Makes points of lines and of closed rounds, in the order of the journal. */
class PointMaker {
  /** Rounds that have lines and are not closed, by loop. */
  readonly #open: Map<string, Map<number, OpenRound>> = new Map();
  /** Rounds that are closed, by loop. */
  readonly #closed: Map<string, number> = new Map();
  /** The loop of the last closed round. */
  #last: string | null = null;
  /** Metrics that have a value at a step that may get another point: the first value counts. */
  readonly #named: Map<number, Set<string>> = new Map();
  #number = 0;

  /** A line outside loops is a point by itself. */
  line({ loop, round, at_ms, metrics, after }: MetricsLine): TrackPoint[] {
    if (loop === null || round === null) return this.outside({ at_ms, metrics, after });
    const rounds = this.#open.get(loop) ?? new Map<number, OpenRound>();
    this.#open.set(loop, rounds);
    const before = rounds.get(round)?.metrics ?? {};
    const sum = ([name, value]: [string, number]) =>
      [name, SUMMED.test(name) ? (before[name] ?? 0) + value : value] as const;
    const added = Object.fromEntries(Object.entries(metrics).map(sum));
    rounds.set(round, { at_ms, metrics: { ...before, ...added } });
    return [];
  }

  /** A point by itself. */
  outside({ after, ...values }: Outside): TrackPoint[] {
    return [this.#point(null, { step: this.#stepAfter(after), ...values })];
  }

  /** The loop's rounds up to this one were another run's. */
  startsAfter(loop: string, round: number): void {
    this.#closed.set(loop, round);
  }

  /** The rounds that are closed: of these loops and of those inside them, or of all. */
  #stepAfter(loops?: readonly string[]): number {
    return [...this.#closed].filter(([loop]) => loops?.some((one) => isUnder(loop, one)) ?? true)
      .reduce((sum, [, rounds]) => sum + rounds, 0);
  }

  /** Rounds close in order: an earlier one whose row was collected is closed too. */
  closed(loop: string, last: number): TrackPoint[] {
    const rounds = this.#open.get(loop) ?? new Map<number, OpenRound>();
    const closed = [...rounds.keys()].filter((round) => round <= last).sort((a, b) => a - b);
    return closed.map((round) => {
      const open = rounds.get(round)!;
      rounds.delete(round);
      this.#closed.set(loop, (this.#closed.get(loop) ?? 0) + 1);
      const step = this.#stepAfter();
      // No loop ended at the step before, so no later point is after it.
      if (this.#last === loop) this.#named.delete(step - 1);
      this.#last = loop;
      return this.#point({ loop, round }, { step, ...open });
    });
  }

  /**
   * Whole rounds, each a point once its last line and those of earlier rounds were read. Rows that
   * closed them may have been collected, and lines outside loops say nothing about rounds.
   */
  whole(lines: readonly MetricsLine[]): TrackPoint[] {
    const closed = lines.map(() => 0);
    const first_later = new Map<string, number>();
    for (const [i, { loop, round }] of [...lines.entries()].reverse()) {
      if (loop === null || round === null) continue;
      const first = first_later.get(loop) ?? Infinity;
      closed[i] = first - 1;
      first_later.set(loop, Math.min(first, round));
    }
    return lines.flatMap((line, i) => [
      ...this.line(line),
      ...(line.loop === null ? [] : this.closed(line.loop, closed[i]!)),
    ]);
  }

  #point(
    round: TrackPoint["round"],
    { step, at_ms, metrics }: OpenRound & { step: number },
  ): TrackPoint {
    const named = this.#named.get(step) ?? new Set();
    this.#named.set(step, named);
    const fresh = Object.entries(metrics).filter(([name]) => !named.has(name));
    for (const [name] of fresh) named.add(name);
    const number = ++this.#number;
    return { number, step, round, at_ms, metrics: Object.fromEntries(fresh) };
  }
}

/** Reads the points of a run from its start, page by page; later calls continue. */
export class TrackPoints {
  readonly #reading: Reading;
  readonly #head: RunHead;
  readonly #maker = new PointMaker();
  #last_seq = 0;
  #begun = false;

  /** `head`: of the run; only its id and its parent are read. */
  constructor(reading: Reading, head: RunHead) {
    this.#reading = reading;
    this.#head = head;
  }

  /** Points that became readable since the last call. */
  async *next(): AsyncGenerator<TrackPoint[]> {
    if (!this.#begun) {
      yield await this.#inherited();
      this.#begun = true;
    }
    const { store, artifacts } = this.#reading;
    for (;;) {
      const query = { kinds: KINDS, after_seq: this.#last_seq, limit: PAGE_ROWS };
      const rows = await store.read(this.#head.id, query);
      if (rows.length === 0) return;
      const lines = rows.map((row) => row.kind === "metrics" ? foundLine(artifacts, row) : null);
      const found = await Promise.all(lines);
      const points = rows.flatMap((row, i) => this.#of(row, found[i]!));
      this.#last_seq = rows.at(-1)!.seq;
      yield points;
    }
  }

  #of(row: JournalRow, found: FoundLine | null): TrackPoint[] {
    const { key, kind, at_ms, epoch } = row;
    if (found !== null) return this.#maker.line(found.line);
    // A copied row closes a round that was inherited.
    const [, loop, round] = /^(.+?)\/(\d+)(?:\/[^/]+)?$/.exec(key) ?? [];
    if (kind === "round" && loop !== undefined) {
      // Without a parent, its rows of epoch 0 are of the rounds before the run's first.
      if (epoch === 0 && this.#head.parent === null) this.#maker.startsAfter(loop, Number(round));
      return this.#maker.closed(loop, Number(round));
    }
    if (kind === "round") return [];
    // A damaged row has no numbers, but outside loops it keeps its place: later points keep theirs.
    return loop === undefined ? this.#maker.outside({ at_ms, metrics: {} }) : [];
  }

  async #inherited(): Promise<TrackPoint[]> {
    const pages = await Array.fromAsync(inheritedPages(this.#reading, this.#head));
    return this.#maker.whole(pages.flat().map(({ line }) => line));
  }
}

const KINDS: JournalRow["kind"][] = ["metrics", "round"];
