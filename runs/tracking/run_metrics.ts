/**
 * Metrics of a run, read from its journal: the lines of `metrics.jsonl`, and the last value of
 * each.
 */
import {
  type ArtifactStore,
  type ForkNote,
  isUnder,
  type JournalRow,
  LostRecordError,
  type RecordedMetrics,
  type RowKind,
  rowValue,
  type RunHead,
  type Store,
} from "../../engine/mod.ts";
import { ancestors } from "../forks/lineage.ts";

/** A line of `metrics.jsonl`. `version`: the policy version that the numbers belong to. */
export type MetricsLine = Pick<JournalRow, "key"> & RecordedMetrics;
/** A line, and the row from which it is made. */
export type FoundLine = { seq: number; line: MetricsLine };

/** @internal */
export type Reading = { store: Store; artifacts: ArtifactStore };

/** Rows that are in memory at a time. */
const PAGE_ROWS = 1000;

/** The lines that a fork inherited from its ancestors, in pages, oldest first. */
export async function* inheritedPages(
  reading: Reading,
  head: RunHead,
): AsyncGenerator<FoundLine[]> {
  let child = head.id;
  let isCopied = (_key: string): boolean => true;
  const above: { note: ForkNote; isCopied: typeof isCopied }[] = [];
  for (const note of await ancestors(reading.store, head)) {
    const keys = await copiedKeys(reading.store, child);
    const below = isCopied; // Every run in between has to have kept it.
    isCopied = (key) => below(key) && startsWith({ note, keys }, key);
    above.unshift({ note, isCopied });
    child = note.run;
  }
  for (const { note, isCopied } of above) {
    for await (const page of ownPages(reading, note.run)) {
      yield page.filter(({ seq, line }) => seq <= note.seq && isCopied(line.key));
    }
  }
}

/** Whether a fork started with what has this key: it took over a loop's first rounds, or results. */
function startsWith({ note, keys }: { note: ForkNote; keys: readonly string[] }, key: string) {
  const [, loop, round] = /^([^/]+)\/(\d+)\//.exec(key) ?? [];
  if (loop === undefined) return keys.some((one) => isUnder(key, one));
  if (loop === note.loop) return Number(round) <= note.round;
  return keys.some((one) => {
    const [, other, last] = /^([^/]+)\/(\d+)$/.exec(one) ?? [];
    return other === loop && Number(round) <= Number(last);
  });
}

/** A run's lines after `after_seq`, without those of its parents. */
export async function* ownPages(
  reading: Reading,
  run: string,
  after_seq = 0,
): AsyncGenerator<FoundLine[]> {
  const { store, artifacts } = reading;
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
  const { loop, round, after, stage, version, at_ms, metrics } = await rowValue(
    artifacts,
    row,
  ) as RecordedMetrics;
  return { key: row.key, loop, round, ...(after && { after }), stage, version, at_ms, metrics };
}

/** Keys of the results and rounds that a fork started with: its first rows, of no engine. */
async function copiedKeys(store: Store, run: string): Promise<string[]> {
  const keys: string[] = [];
  for (let after_seq = 0;;) {
    const kinds: RowKind[] = ["result", "round"];
    const rows = await store.read(run, { kinds, after_seq, limit: PAGE_ROWS });
    const copied = rows.filter(({ epoch }) => epoch === 0);
    keys.push(...copied.map(({ key }) => key));
    if (copied.length < PAGE_ROWS) return keys;
    after_seq = rows.at(-1)!.seq;
  }
}
