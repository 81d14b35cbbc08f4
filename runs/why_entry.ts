/** Explains an entry of a run's journal, even if an ancestor recorded it. Only reads. */
import {
  explain,
  type Explanation,
  InvalidInputError,
  isUnder,
  type JournalRow,
  keysRead,
  type RunHead,
  type Store,
} from "../engine/mod.ts";
import { didYouMean } from "../configs/mod.ts";
import { ancestors } from "./forks/lineage.ts";
import { recordedDefinition } from "./session/run_graph.ts";

/** An entry's {@linkcode Explanation}, and the run whose journal contains it. */
export type Why = Explanation & {
  /** The run that recorded it: a fork's prefix was recorded by its parent. */
  run: string;
};

/** The number of entries that an error names. */
const NAMED_MAX = 8;

/**
 * Explains an entry of a run's journal, and each of its starts.
 * @throws {InvalidInputError} If neither the run nor an ancestor has such an entry; it names
 * similar ones.
 */
export async function whyEntry(store: Store, head: RunHead, key: string): Promise<Why> {
  const line = [head, ...(await ancestors(store, head)).map((ancestor) => ancestor.head)];
  for (const run of line) {
    const rows = await store.read(run.id, { prefix: key });
    // The run that recorded an entry explains it, even if a fork has copied it (epoch 0).
    if (rows.some((row) => row.key === key && row.epoch > 0 && row.kind !== "round")) {
      return await explained(store, run, key);
    }
  }
  throw await noSuchEntry(store, { head, key });
}

async function explained(store: Store, run: RunHead, key: string): Promise<Why> {
  const reads = await readsOf(store, run, key);
  const parent = key.slice(0, Math.max(0, key.lastIndexOf("/")));
  const prefixes = [key, "resume", ...(parent === "" ? [] : [parent]), ...reads];
  const rows = new Map<number, JournalRow>();
  for (const prefix of prefixes) {
    for (
      const row of await store.read(run.id, {
        prefix,
        kinds: ["intent", "result", "failure", "recovery", "round"],
      })
    ) {
      rows.set(row.seq, row);
    }
  }
  const ordered = [...rows.values()].sort((a, b) => a.seq - b.seq);
  return { run: run.id, ...explain(ordered, { key, reads }) };
}

/** None if the graph's module can no longer be loaded: the rest is still explained. */
async function readsOf(store: Store, run: RunHead, key: string): Promise<string[]> {
  const graph = await recordedDefinition(store, run, { accept: true }).then(
    ({ definition, config }) => definition.build(config),
    () => null,
  );
  return graph ? keysRead(graph, key) : [];
}

async function noSuchEntry(
  store: Store,
  { head, key }: { head: RunHead; key: string },
): Promise<InvalidInputError> {
  const rows = await store.read(head.id, { kinds: ["intent", "result"] });
  const keys = [...new Set(rows.map((row) => row.key))];
  const below = keys.filter((known) => isUnder(known, key));
  const named = below.slice(0, NAMED_MAX).map((known) => `\n  ${known}`).join("");
  const more = below.length > NAMED_MAX ? `\n  and ${below.length - NAMED_MAX} more` : "";
  const near = below.length > 0 ? `. Below it are:${named}${more}` : didYouMean(key, keys);
  return new InvalidInputError(
    `Cannot explain '${key}' because run '${head.id}' has no such entry${near}`,
    {
      run: head.id,
      key,
    },
  );
}
