/**
 * Metrics of a run, read from its journal: the lines of `metrics.jsonl`, and the last value of
 * each.
 */
import {
  type ArtifactStore,
  isUnder,
  type JournalRow,
  LostRecordError,
  type RecordedMetrics,
  rowValue,
  type RunHead,
  type Store,
} from "../engine/mod.ts";
import { earlierLines, type FoundLine, type MetricsLine } from "./earlier_metrics.ts";
import { ancestors, isTakenOver } from "./lineage.ts";

/** @internal */
export type Reading = { store: Store; artifacts: ArtifactStore };

/** Rows that are in memory at a time. */
const PAGE_ROWS = 1000;

/** The lines that a fork inherited from its ancestors, in pages, oldest first. */
export async function* inheritedPages(
  reading: Reading,
  head: RunHead,
): AsyncGenerator<FoundLine[]> {
  const copied = head.parent === null ? [] : await copiedResults(reading.store, head.id);
  for (const ancestor of (await ancestors(reading.store, head)).toReversed()) {
    const inRound = /^[^/]+\/\d+\//; // Outside the loops, only what the fork did not run again.
    const isShared = ({ seq, line: { key } }: FoundLine) =>
      isTakenOver({ seq, key }, ancestor) &&
      (inRound.test(key) || copied.some((result) => isUnder(key, result)));
    for await (const page of ownPages(reading, ancestor.run)) yield page.filter(isShared);
  }
}

/** A run's lines after `after_seq`, without those of its parents. */
export async function* ownPages(
  reading: Reading,
  run: string,
  after_seq = 0,
): AsyncGenerator<FoundLine[]> {
  const { store, artifacts } = reading;
  if (after_seq === 0) yield await earlierLines(store, run);
  for (let last = after_seq;;) {
    const rows = await store.read(run, { kinds: ["metrics"], after_seq: last, limit: PAGE_ROWS });
    if (rows.length === 0) return;
    last = rows.at(-1)!.seq;
    const found = await Promise.all(rows.map((row) => foundLine(artifacts, row)));
    yield found.filter((one) => one !== null);
  }
}

/** The last value of each metric. */
export async function lastMetrics(
  reading: Reading,
  head: RunHead,
): Promise<Record<string, number>> {
  const last: Record<string, number> = {};
  for (const pages of [inheritedPages(reading, head), ownPages(reading, head.id)]) {
    for await (const page of pages) for (const { line } of page) Object.assign(last, line.metrics);
  }
  return last;
}

/** The line of a `metrics` row; null if it is damaged in the journal: the others stay valid. */
export async function foundLine(
  artifacts: ArtifactStore,
  row: JournalRow,
): Promise<FoundLine | null> {
  try {
    return { seq: row.seq, line: await lineOf(artifacts, row) };
  } catch (error) {
    if (error instanceof LostRecordError) return null;
    throw error;
  }
}

async function lineOf(artifacts: ArtifactStore, row: JournalRow): Promise<MetricsLine> {
  const { loop, round, stage, version, at_ms, metrics } = await rowValue(
    artifacts,
    row,
  ) as RecordedMetrics;
  return { key: row.key, loop, round, stage, version, at_ms, metrics };
}

/** Keys of the results that a fork started with: its first rows, which no engine wrote. */
async function copiedResults(store: Store, run: string): Promise<string[]> {
  const keys: string[] = [];
  for (let after_seq = 0;;) {
    const rows = await store.read(run, { kinds: ["result"], after_seq, limit: PAGE_ROWS });
    const copied = rows.filter(({ epoch }) => epoch === 0);
    keys.push(...copied.map(({ key }) => key));
    if (copied.length < PAGE_ROWS) return keys;
    after_seq = rows.at(-1)!.seq;
  }
}
