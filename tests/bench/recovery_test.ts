import { strictEqual } from "node:assert/strict";
import { groupsInFlight, nextResult } from "../../bench/recovery.ts";
import type { JournalRow, RowKind } from "../../engine/mod.ts";

function journal(
  ...entries: [at_ms: number, kind: RowKind, key: string, value?: unknown][]
): JournalRow[] {
  return entries.map(([at_ms, kind, key, value], i) => ({
    kind,
    key,
    at_ms,
    seq: i + 1,
    epoch: 1,
    value: JSON.stringify(value ?? {}),
  }));
}

Deno.test("nextResult() is when a worker's first result after the fault was durable", () => {
  const rows = journal(
    [10, "intent", "train", { runs_on: "trainer", stage: "train_policy" }],
    [11, "intent", "score", { runs_on: "engine", stage: "score_group" }],
    [12, "intent", "save", { runs_on: "trainer", stage: "checkpoint_policy" }],
    [20, "result", "score"], // No worker made it.
    [21, "result", "save"], // It often has nothing to do.
    [30, "result", "train"],
  );
  strictEqual(nextResult(rows, { after_ms: 15, of: ["trainer"] }), 30);
  strictEqual(nextResult(rows, { after_ms: 15, of: ["sampler"] }), NaN);
  strictEqual(nextResult(rows, { after_ms: 30, of: ["trainer"] }), NaN);
});

Deno.test("groupsInFlight() counts what was asked for and not delivered at that moment", () => {
  const rows = journal(
    [10, "note/generation", "slab#0", { groups: 4 }],
    [20, "note/generated", "slab#0", { groups: 4 }],
    [21, "note/generation", "slab#1", { groups: 3 }],
    [40, "note/generated", "slab#1", { groups: 3 }],
  );
  strictEqual(groupsInFlight(rows, 15), 4);
  strictEqual(groupsInFlight(rows, 30), 3);
  strictEqual(groupsInFlight(rows, 50), 0);
});
