/** Which rows of an ended run nothing can reach any more. */
import {
  type ArtifactStore,
  BadDataError,
  hasEnded,
  type JournalRow,
  recordedAs,
  type RowKind,
  type RunHead,
  type Store,
} from "../../engine/mod.ts";
import { recordedRows, VersionChain, VersionNote } from "../../workers/mod.ts";
import { type ClosedRound, closedRound } from "../forks/carried_versions.ts";
import { residentRows } from "../forks/lineage.ts";

/** Loops by name: the first round whose rows stay, and what needs it. */
type KeptFrom = Record<string, { round: number; why: string }>;
export type CollectableRows = {
  run: string;
  seqs: number[];
  /** Number of characters in their keys and values. */
  bytes: number;
  from: KeptFrom;
  /** Forks that were considered. */
  forks: string[];
};

type Collecting = {
  store: Store;
  artifacts: ArtifactStore;
  /** Every run of the store. */
  heads: readonly RunHead[];
  /** Rows already selected for removal, by run: forks are decided before their parents. */
  going: ReadonlyMap<string, ReadonlySet<number>>;
};

const ENTRY_KINDS: readonly RowKind[] = ["intent", "result", "failure", "checkpoint", "round"];

/**
 * A closed round stays if it or an earlier round has a checkpoint, or if a fork's versions are
 * rebuilt through it. The rows of older rounds are removed, and the versions that nothing remaining
 * is rebuilt from. Notes, rows outside the loops, and the newest round always stay, because `show`
 * reads them.
 */
export async function collectableRows(
  collecting: Collecting,
  head: RunHead,
): Promise<CollectableRows> {
  const rows = await rowsOf(collecting, head);
  const { chain, rounds } = await versionsOf(collecting, head);
  const forks = descendants(collecting.heads, head);
  const needed = await neededBy(collecting, forks);
  const saved = new Set(chain.checkpoints().map(({ version }) => version));
  const from: KeptFrom = {};
  const stays = new Set(needed.keys());
  for (const [loop, loopRounds] of Map.groupBy(rounds, ({ loop }) => loop)) {
    from[loop] = keptFrom(loopRounds, { saved, needed });
    const kept = loopRounds.filter(({ round }) => round >= from[loop]!.round);
    const rebuilt = loopRounds.some(({ versions }) =>
      versions.some((version) => saved.has(version))
    );
    for (const version of kept.flatMap(({ versions }) => versions)) {
      stays.add(version);
      if (rebuilt) { for (const id of await route(chain, version)) stays.add(id); }
    }
  }
  const going = rows.filter((row) =>
    row.kind === "note/version" ? isUnneeded(row, stays) : isBelow(row, from)
  );
  const bytes = going.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
  return {
    run: head.id,
    seqs: going.map(({ seq }) => seq),
    bytes,
    from,
    forks: forks.map(({ id }) => id),
  };
}

/** Runs that were forked from this one, or from a fork of it. */
export function descendants(heads: readonly RunHead[], { id }: RunHead): RunHead[] {
  const children = heads.filter(({ parent }) => parent?.run === id);
  return children.flatMap((child) => [child, ...descendants(heads, child)]);
}

async function rowsOf({ store, going }: Collecting, { id }: RunHead): Promise<JournalRow[]> {
  const gone = going.get(id);
  const rows = await store.read(id);
  return gone ? rows.filter(({ seq }) => !gone.has(seq)) : rows;
}

/** A run's closed rounds, and the chain along which its versions are rebuilt. */
async function versionsOf(
  collecting: Collecting,
  head: RunHead,
): Promise<{ chain: VersionChain; rounds: ClosedRound[] }> {
  const { store, artifacts } = collecting;
  const recorded = recordedRows(await residentRows(store, head));
  const rows = (await rowsOf(collecting, head)).filter(({ kind }) => kind === "round");
  const rounds = await Promise.all(rows.map((row) => closedRound(artifacts, row)));
  return {
    chain: new VersionChain(artifacts, recorded),
    rounds: rounds.filter((round) => round !== null),
  };
}

/** Versions that forks are rebuilt through, with the fork that needs each. */
async function neededBy(
  collecting: Collecting,
  forks: readonly RunHead[],
): Promise<Map<string, string>> {
  const needed = new Map<string, string>();
  for (const fork of forks) {
    const { chain, rounds } = await versionsOf(collecting, fork);
    for (const loopRounds of Map.groupBy(rounds, ({ loop }) => loop).values()) {
      for (const id of await reached(loopRounds, { chain, ended: hasEnded(fork) })) {
        needed.set(id, fork.id);
      }
    }
  }
  return needed;
}

/**
 * Versions through which those of a loop's rounds are rebuilt. A loop of an ended run without a
 * checkpoint is over: only its versions themselves count, because others may name them.
 */
async function reached(
  rounds: readonly ClosedRound[],
  { chain, ended }: { chain: VersionChain; ended: boolean },
): Promise<Set<string>> {
  const versions = new Set(rounds.flatMap(({ versions }) => versions));
  const saved = chain.checkpoints().some(({ version }) => versions.has(version));
  if (ended && !saved) return versions;
  return new Set((await Promise.all([...versions].map((version) => route(chain, version)))).flat());
}

/**
 * The versions through which a version is rebuilt, from its checkpoint or the base on; only itself
 * if they were collected.
 */
async function route(chain: VersionChain, version: string): Promise<string[]> {
  try {
    const { start, redo } = await chain.routeTo(version);
    return [start.id, ...redo.map(({ id }) => id)];
  } catch (error) {
    if (error instanceof BadDataError) return [version];
    throw error;
  }
}

type Reasons = { saved: ReadonlySet<string>; needed: ReadonlyMap<string, string> };

/** `rounds`: those of one loop, oldest first. */
function keptFrom(rounds: ClosedRound[], { saved, needed }: Reasons): KeptFrom[string] {
  for (const { round, versions } of rounds) {
    if (versions.some((version) => saved.has(version))) {
      return { round, why: "a checkpoint is of this round" };
    }
    const fork = versions.map((version) => needed.get(version)).find((run) => run !== undefined);
    if (fork !== undefined) {
      return { round, why: `fork '${fork}' needs it to rebuild its versions` };
    }
  }
  return { round: rounds.at(-1)!.round, why: "it is the newest" };
}

function isUnneeded(row: JournalRow, stays: ReadonlySet<string>): boolean {
  return !stays.has(row.key) && recordedAs(row, VersionNote.parse).number > 0;
}

/** `round/3/score#17` is below `round` if that is kept from 5 on. */
function isBelow({ kind, key }: JournalRow, from: KeptFrom): boolean {
  const [loop = "", round] = key.split("/");
  return ENTRY_KINDS.includes(kind) && round !== undefined && loop in from &&
    Number(round) < from[loop]!.round;
}
