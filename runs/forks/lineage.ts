/** Reads a fork together with what it inherits by reference from its ancestors. */
import {
  type ForkNote,
  InvalidInputError,
  isReadable,
  type JournalRow,
  type ReadQuery,
  recordedValue,
  type RowKind,
  type RunHead,
  type Store,
} from "../../engine/mod.ts";
import { RESIDENT_KINDS } from "../session/worker_groups.ts";

/**
 * A run whose prefix another run continues: rows up to `seq`, and the forked loop up to `round`.
 */
type Ancestor = ForkNote & { head: RunHead };

/** The ancestors of a run, nearest first; none if it is not a fork. */
export async function ancestors(store: Store, head: RunHead): Promise<Ancestor[]> {
  const found: Ancestor[] = [];
  for (let child = head; child.parent !== null;) {
    const note = await forkNote(store, child);
    const parent = await store.head(note.run);
    if (parent === null) {
      throw new InvalidInputError(
        `Cannot read run '${child.id}' because its parent '${note.run}' is not in this store`,
        {
          run: child.id,
        },
      );
    }
    found.push({ ...note, head: parent });
    child = parent;
  }
  return found;
}

async function forkNote(store: Store, { id }: RunHead): Promise<ForkNote> {
  const [row] = await store.read(id, { kinds: ["note/fork"], limit: 1 });
  return recordedValue(row!) as ForkNote;
}

/**
 * Rows that a run inherited from its ancestors, the oldest run's first. Copied rows appear twice.
 */
export async function readTakenOver(
  store: Store,
  head: RunHead,
  query: ReadQuery,
): Promise<JournalRow[]> {
  const rows: JournalRow[] = [];
  for (const ancestor of (await ancestors(store, head)).toReversed()) {
    rows.push(
      ...(await store.read(ancestor.run, query)).filter((row) => isTakenOver(row, ancestor)),
    );
  }
  return rows;
}

/** Whether a row of an ancestor was inherited. */
export function isTakenOver(
  { seq, key }: Pick<JournalRow, "seq" | "key">,
  ancestor: ForkNote,
): boolean {
  if (seq > ancestor.seq) return false;
  if (!key.startsWith(`${ancestor.loop}/`)) return true;
  return Number(key.slice(ancestor.loop.length + 1).split("/")[0]) <= ancestor.round;
}

/**
 * Rows that say which versions a run has and what they can be rebuilt from. A fork has its parents'
 * versions, but only separate checkpoints: its parents may drop theirs. Its configuration includes
 * its parents' replans.
 */
export async function residentRows(store: Store, head: RunHead): Promise<JournalRow[]> {
  const rows = await store.read(head.id, { kinds: RESIDENT_KINDS });
  if (head.parent === null) return rows;
  return [...await readTakenOver(store, head, { kinds: ["note/version"] }), ...rows];
}

/**
 * Digests of weights by version, from publications, exports and checkpoints of the run and its
 * ancestors.
 */
export async function recordedDigests(store: Store, head: RunHead): Promise<Map<string, string>> {
  const digests = new Map<string, string>();
  const kinds: RowKind[] = ["note/publication", "note/exported", "note/checkpoint"];
  const runs = [head.id, ...(await ancestors(store, head)).map(({ run }) => run)];
  const rows = (await Promise.all(runs.map((run) => store.read(run, { kinds })))).flat();
  for (const row of rows.filter(isReadable)) {
    const note = recordedValue(row) as { publication?: Digested } & Partial<Digested>;
    const { version, digest } = note.publication ?? note;
    if (version && digest) digests.set(version, digest);
  }
  return digests;
}

type Digested = { version: string; digest: string };
