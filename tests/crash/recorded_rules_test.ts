import { deepStrictEqual } from "node:assert/strict";
import type { JournalRow, RowKind, RunHead } from "../../engine/mod.ts";
import { brokenRules } from "./recorded_rules.ts";

function journal(
  ...entries: [kind: RowKind, key: string, epoch: number, value?: unknown][]
): JournalRow[] {
  return entries.map(([kind, key, epoch, value], i) => ({
    kind,
    key,
    epoch,
    seq: i + 1,
    at_ms: 0,
    value: JSON.stringify(value ?? {}),
  }));
}
const head = { epoch: 2 } as RunHead;

Deno.test("brokenRules() has nothing to say of a run that was killed and went on", () => {
  const total = { read: 8, trained: 6, "filtered.zero_advantage": 2 };
  const rows = journal(
    ["intent", "a", 1],
    ["intent", "a", 2], // It had not completed: it may start again.
    ["note/version", "v1", 2],
    ["result", "a", 2],
    ["round", "round/1", 2, { total, carried: {} }],
    ["round", "round/2", 2, { total: { read: 9, trained: 6 }, carried: { draws: { pending: 3 } } }],
  );
  deepStrictEqual(brokenRules(head, rows), []);
});

Deno.test("brokenRules() names every kind of damage", () => {
  const rows = journal(
    ["result", "a", 2],
    ["intent", "a", 2],
    ["result", "a", 2],
    ["note/version", "v1", 1],
    ["note/version", "v1", 3],
    ["round", "round/1", 3, { total: { read: 8, trained: 7 }, carried: {} }],
  );
  deepStrictEqual(brokenRules(head, rows), [
    "row 4 was written by epoch 1 after a later epoch",
    "row 5 is of epoch 3, the run's is 2",
    "row 6 is of epoch 3, the run's is 2",
    "row 2 starts a again after its result",
    "row 3 is a second result of a",
    "version v1 is recorded twice",
    "round/1 closed with draws in no state",
  ]);
});
