import {
  computedStatus,
  isReadable,
  type JournalRow,
  recordedError,
  recordedField,
  recordedRound,
  recordedValue,
  type RowKind,
  type RunHead,
  type Store,
} from "../engine/mod.ts";
import { byEvaluationName, type SettingChange } from "../configs/mod.ts";
import type { Recovery, Replan, VersionNote, WorkerState } from "../workers/mod.ts";
import {
  type BoundedRows,
  type Ledger,
  ledgerOf,
  type MixedSource,
  untrainedText,
} from "../flows/mod.ts";

import { changedSettings } from "./session/settings.ts";
import { startOf } from "./start/start_note.ts";
import { ancestors, readTakenOver, recordedDigests } from "./forks/lineage.ts";

/**
 * What `show RUN --json` prints. Read from the journal, so it is the same for every reader, even
 * during the run.
 */
export type RunView = {
  id: string;
  name: string;
  status: string;
  queue: string | null;
  priority: number;
  /** The parent run, and its last inherited round; null: the run is not a fork. */
  parent: { run: string; loop: string; round: number } | null;
  /** Where `start_from` began; absent: from a model. */
  start?: { run: string; loop: string; round: number };
  graph: string;
  graph_hash: string;
  epoch: number;
  engine_pid: number | null;
  workers: WorkerState[];
  loop: string | null;
  round: number;
  policy: NewestVersion | null;
  /** The value model's version; absent: there is none. */
  critic?: NewestVersion;
  ledger: Ledger;
  /** What was found about the rows of each split before anything was generated from them. */
  rows: BoundedRows[];
  /** What the newest round of each mixture drew, and all before it; empty: none is mixed. */
  mixture: MixedSource[];
  generated: { groups: number; samples: number; tokens: number };
  recoveries: Recovery[];
  /**
   * Where numerics changed: before the first change the run repeats bit for bit, after it up to
   * rounding.
   */
  replans: Replan[];
  /** Settings that resumes have changed and no result depends on. */
  settings: SettingChange[];
  /** Why this run's own rounds trained nothing; null: they did, or no rounds draw. */
  untrained: string | null;
  evaluations: Record<string, unknown>[];
  metrics: Record<string, number>;
  error: unknown;
  created_at: string;
  updated_at: string;
};

/**
 * The newest version of a chain, with its digest once its weights were exported, published or
 * saved.
 */
export type NewestVersion = { version: string; number: number; digest: string | null };

/**
 * What `Home.liveFacts` gathers: the workers of a running run, which are not in the journal, and
 * the last metrics.
 */
export type LiveFacts = { workers: WorkerState[]; metrics: Record<string, number> };

/** Reads a run's state. `live`: what HOME/runs/RUN contains besides the journal. */
export async function runView(store: Store, head: RunHead, live: LiveFacts): Promise<RunView> {
  const read = async (...kinds: RowKind[]) =>
    (await store.read(head.id, { kinds })).filter(isReadable);
  const readWhole = async (...kinds: RowKind[]) => [
    ...(await readTakenOver(store, head, { kinds })).filter(isReadable),
    ...await read(...kinds),
  ];
  const rounds = await read("round");
  const versions = await readWhole("note/version");
  const [parent] = await ancestors(store, head);
  const start = await startOf(store, head);
  const generations = (await read("note/generation")).map(
    value<{ groups: number; samples: number }>,
  );
  const delivered = (await read("note/generated")).map(value<{ tokens: number }>);
  const sum = <T>(list: T[], of: (item: T) => number) =>
    list.reduce((total, item) => total + of(item), 0);
  const status = computedStatus(head);
  return {
    id: head.id,
    name: head.name,
    status,
    queue: head.queue,
    priority: head.priority,
    parent: parent ? { run: parent.run, loop: parent.loop, round: parent.round } : null,
    start: start ? { run: start.run, loop: start.loop, round: start.round } : undefined,
    graph: graphName(head),
    graph_hash: head.graph_hash,
    epoch: head.epoch,
    engine_pid: status === "running" ? head.owner?.pid ?? null : null,
    workers: status === "running" ? live.workers.toSorted(byGroup) : [],
    ...lastRound(rounds),
    ...await newestVersions(store, { head, versions }),
    ledger: ledgerOf(lastTotals(rounds)),
    generated: {
      groups: sum(generations, (g) => g.groups),
      samples: sum(generations, (g) => g.samples),
      tokens: sum(delivered, (d) => d.tokens),
    },
    rows: (await readWhole("note/rows")).map(value<BoundedRows>),
    mixture: newestMixture((await readWhole("note/mixture")).map(value<MixedRound>)),
    // The engine's row of a failed run that was resumed does not belong to a worker.
    recoveries: (await read("recovery")).map(value<Recovery>).filter(({ action }) =>
      action !== undefined
    ),
    replans: (await readWhole("note/replan")).map(value<Replan>),
    settings: await changedSettings(store, head),
    untrained: untrainedText(ownTally(rounds)),
    evaluations: (await readWhole("note/evaluation")).toSorted((a, b) =>
      byEvaluationName(a.key, b.key)
    ).map(value<Record<string, unknown>>),
    metrics: live.metrics,
    error: recordedError(head),
    created_at: new Date(head.created_ms).toISOString(),
    updated_at: new Date(head.updated_ms).toISOString(),
  };
}

type MixedRound = { round: number; sources: MixedSource[] };

/** Rounds may be drawn ahead, but the last one has the most draws. */
function newestMixture(rounds: MixedRound[]): MixedSource[] {
  return rounds.reduce<MixedRound | undefined>(
    (newest, one) => newest === undefined || one.round >= newest.round ? one : newest,
    undefined,
  )?.sources ?? [];
}

function byGroup(a: WorkerState, b: WorkerState): number {
  return a.group === b.group ? (a.rank ?? 0) - (b.rank ?? 0) : a.group < b.group ? -1 : 1;
}

/** The head stores the whole drawing; people want the name. */
export function graphName(head: RunHead): string {
  return (recordedField(head, "graph") as { name: string }).name;
}

function value<T>(row: JournalRow): T {
  return recordedValue(row) as T;
}

function lastRound(rounds: JournalRow[]): { loop: string | null; round: number } {
  const last = rounds.at(-1);
  if (!last) return { loop: null, round: 0 };
  return {
    loop: last.key.split("/").slice(0, -1).join("/") || last.key,
    round: recordedRound(last).round,
  };
}

/** Totals of every loop, added up: each round row holds the totals of its loop so far. */
function lastTotals(rounds: JournalRow[]): Record<string, number> {
  const newest = new Map<string, Record<string, number>>();
  for (const row of rounds) {
    newest.set(row.key.replace(/\/\d+$/, ""), recordedRound(row).total);
  }
  const totals: Record<string, number> = {};
  for (const total of newest.values()) {
    for (const [name, n] of Object.entries(total)) totals[name] = (totals[name] ?? 0) + n;
  }
  return totals;
}

/** Tallies of the rounds that this run closed itself: a fork's first rows are its parent's. */
function ownTally(rounds: JournalRow[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const row of rounds.filter(({ epoch }) => epoch > 0)) {
    for (const [name, n] of Object.entries(recordedRound(row).tally ?? {})) {
      sum[name] = (sum[name] ?? 0) + n;
    }
  }
  return sum;
}

async function newestVersions(
  store: Store,
  { head, versions }: { head: RunHead; versions: JournalRow[] },
): Promise<Pick<RunView, "policy" | "critic">> {
  const digests = await recordedDigests(store, head);
  const newestOf = (group?: string): NewestVersion | null => {
    const groupVersions = versions.filter((row) => value<VersionNote>(row).group === group);
    // A run that starts from another one's version records its base after that.
    const started = groupVersions.some((row) => value<VersionNote>(row).start);
    const newest = groupVersions.findLast((row) => {
      const { number, start } = value<VersionNote>(row);
      return !started || start !== undefined || number > 0;
    });
    if (newest === undefined) return null;
    return {
      version: newest.key,
      number: value<VersionNote>(newest).number,
      digest: digests.get(newest.key) ?? null,
    };
  };
  return { policy: newestOf(), critic: newestOf("critic") ?? undefined };
}
