/** Metrics recorded in notes before metrics had separate rows. */
import {
  isReadable,
  type JournalRow,
  type RecordedMetrics,
  type RowKind,
  type Store,
} from "../engine/mod.ts";
import { VersionNote } from "../workers/mod.ts";
import { stepMetrics } from "../flows/mod.ts";

/** A line of `metrics.jsonl`. `version`: the policy version that the numbers belong to. */
export type MetricsLine = Pick<JournalRow, "key"> & RecordedMetrics;
/** A line, and the row from which it is made. */
export type FoundLine = { seq: number; line: MetricsLine };

const EARLIER: RowKind[] = [
  "note/round_metrics",
  "note/version",
  "note/evaluation",
  "note/generated",
];
const PAGE_ROWS = 100;

/**
 * Lines of a run's first part, up to its first `metrics` row. Values that were only printed then,
 * such as times, are lost.
 */
export async function earlierLines(store: Store, run: string): Promise<FoundLine[]> {
  const [first] = await store.read(run, { kinds: ["metrics"], limit: 1 });
  const until = first?.seq ?? Infinity;
  const lines: FoundLine[] = [];
  for (let after_seq = 0; after_seq < until;) {
    const rows = await store.read(run, { kinds: EARLIER, after_seq, limit: PAGE_ROWS });
    for (const row of rows.filter((row) => row.seq < until && isReadable(row))) {
      const metrics = metricsOf(row);
      if (Object.keys(metrics).length === 0) continue;
      const version = row.kind === "note/version" ? row.key : null;
      const place = placeOf(await stageKey(store, run, row));
      lines.push({ seq: row.seq, line: { ...place, version, at_ms: row.at_ms, metrics } });
    }
    if (rows.length < PAGE_ROWS) break;
    after_seq = rows.at(-1)!.seq;
  }
  return lines;
}

/** The values of a note, by the names that they had. */
function metricsOf({ kind, value }: JournalRow): Record<string, number> {
  const note = JSON.parse(value) as Record<string, unknown>;
  const told = kind === "note/version"
    ? versionMetrics(note)
    : kind === "note/evaluation"
    ? evaluationMetrics(note)
    : kind === "note/generated"
    ? { "perf/generated_tokens": note.tokens }
    : note;
  return Object.fromEntries(
    Object.entries(told).flatMap(([name, n]) => typeof n === "number" ? [[name, n] as const] : []),
  );
}

function versionMetrics(note: unknown): Record<string, unknown> {
  const made = VersionNote.safeParse(note);
  return made.success && made.data.steps.length > 0 ? stepMetrics(made.data) : {};
}

function evaluationMetrics(note: Record<string, unknown>): Record<string, unknown> {
  if (note.pairs !== undefined) {
    return { "eval/pair_accuracy": note.pair_accuracy, "eval/pair_margin": note.pair_margin };
  }
  return {
    [`eval/${note.name}/avg_at_k`]: note.avg_at_k,
    [`eval/${note.name}/pass_at_k`]: note.pass_at_k,
  };
}

/**
 * The stage that wrote a note: its key, or the key of the result right after it; the note's key if
 * that row was collected.
 */
async function stageKey(
  store: Store,
  run: string,
  { seq, kind, key }: JournalRow,
): Promise<string> {
  if (kind !== "note/version" && kind !== "note/evaluation") return key;
  const [next] = await store.read(run, { after_seq: seq, limit: 1 });
  return next?.kind === "result" && next.seq === seq + 1 ? next.key : key;
}

function placeOf(key: string): Pick<MetricsLine, "key" | "loop" | "round" | "stage"> {
  const [, loop = null, round] = /^([^/]+)\/(\d+)\//.exec(key) ?? [];
  const stage = key.split("/").at(-1)!.split(/[#~]/)[0]!;
  return { key, loop, round: round === undefined ? null : Number(round), stage };
}
