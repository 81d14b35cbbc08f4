/**
 * Reads the part of a run's journal that replay needs: everything outside loops, and what each
 * loop's closed rounds left open.
 */
import type { LoopNode, Scope } from "../graph/types.ts";
import type { Journal } from "./journal.ts";
import type { RoundRecord } from "./tree.ts";
import { isUnder, joinKey } from "../graph/keys.ts";
import { recordedValue } from "./recorded_value.ts";
import type { JournalRow, RowKind } from "../stores/store.ts";

const ENTRY_KINDS: RowKind[] = ["intent", "result", "failure", "checkpoint"];
/** Key of the `recovery` row with which a resume opens new budgets. */
export const REOPENED = "resume";

/** Fills the journal's tree. History below closed rounds is not read. */
export async function loadJournal(journal: Journal, root: Scope): Promise<void> {
  if (journal.last_seq === 0) return;
  const { store, run } = journal.options;
  const [reopened] = await store.read(run, {
    kinds: ["recovery"],
    prefix: REOPENED,
    newest_first: true,
    limit: 1,
  });
  if (reopened?.key === REOPENED) journal.reopened_seq = reopened.seq;
  await loadScope(journal, { scope: root, path: "" });
}

async function loadScope(
  journal: Journal,
  { scope, path }: { scope: Scope; path: string },
): Promise<void> {
  for (const node of scope.nodes) {
    const key = joinKey(path, node.name);
    if (node.kind === "loop") await loadLoop(journal, { node, key });
    else if (node.kind === "when") {
      await loadScope(journal, { scope: node.then, path: `${key}/then` });
      await loadScope(journal, { scope: node.otherwise, path: `${key}/otherwise` });
    } else if (node.kind !== "flat") await loadEntries(journal, key);
  }
}

async function loadEntries(journal: Journal, key: string): Promise<void> {
  const { store, run } = journal.options;
  for (const row of await store.read(run, { kinds: ENTRY_KINDS, prefix: key })) {
    if (isUnder(row.key, key)) takeRow(journal, row);
  }
}

async function loadLoop(
  journal: Journal,
  { node, key }: { node: LoopNode; key: string },
): Promise<void> {
  const { store, run } = journal.options;
  const closed = await closedRounds(journal, { key, count: node.lag + 1 });
  if (closed.length > 0) journal.rounds.set(key, closed);
  const last = closed.at(-1);
  const rows = await store.read(run, {
    kinds: [...ENTRY_KINDS, "round"],
    prefix: `${key}/`,
    after_seq: last?.open_after_seq ?? 0,
  });
  for (const row of rows) {
    const { round, below } = roundOf(row.key, key);
    if (round <= (last?.round ?? 0)) continue;
    if (row.kind !== "round") takeRow(journal, row);
    else if (below) await takeNestedRound(journal, row);
  }
}

/**
 * The newest `count` round rows of one loop, oldest first. Rows of nested loops are under the same
 * prefix.
 */
async function closedRounds(
  journal: Journal,
  { key, count }: { key: string; count: number },
): Promise<RoundRecord[]> {
  const { store, run } = journal.options;
  for (let limit = count;; limit *= 8) {
    const rows = await store.read(run, {
      kinds: ["round"],
      prefix: `${key}/`,
      newest_first: true,
      limit,
    });
    const roundRows = rows.filter((row) => !roundOf(row.key, key).below).slice(0, count);
    if (roundRows.length < count && rows.length === limit) continue;
    const records = roundRows.reverse().map((row) => journal.fetch(recordedValue(row)));
    return await Promise.all(records) as RoundRecord[];
  }
}

/** `round/3/inner/2` under `round`: round 3, below it. */
function roundOf(key: string, loop: string): { round: number; below: boolean } {
  const [round = "", ...rest] = key.slice(loop.length + 1).split("/");
  return { round: Number(round), below: rest.length > 0 };
}

function takeRow(journal: Journal, row: JournalRow): void {
  journal.root.at(row.key).take(row, journal.reopened_seq);
}

async function takeNestedRound(journal: Journal, row: JournalRow): Promise<void> {
  const path = row.key.slice(0, row.key.lastIndexOf("/"));
  const known = journal.rounds.get(path) ?? [];
  known.push(await journal.fetch(recordedValue(row)) as RoundRecord);
  journal.rounds.set(path, known);
}
