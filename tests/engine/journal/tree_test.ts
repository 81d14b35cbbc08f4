import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { addTally, Entry } from "../../../engine/journal/tree.ts";
import type { JournalRow } from "../../../engine/mod.ts";

function row(seq: number, kind: JournalRow["kind"], rest: Partial<JournalRow> = {}): JournalRow {
  return { seq, epoch: 1, at_ms: 0, kind, key: "work", value: "{}", ...rest };
}

function failure(cause_kind: string, next_ms: number | null): string {
  return JSON.stringify({ attempt: 1, next_ms, error: { code: "x", message: "x", cause_kind } });
}

function taken(rows: JournalRow[], reopened_seq = 0): Entry {
  const entry = new Entry("work");
  for (const each of rows) entry.take(each, reopened_seq);
  return entry;
}

Deno.test("Entry.at() makes the entries of a path once, each with its whole key", () => {
  const root = new Entry("");
  const step = root.at("round/3/score#17");
  strictEqual(step.key, "round/3/score#17");
  strictEqual(root.at("round/3/score#17"), step);
  strictEqual(root.at("round").at("3").child("score#17"), step);
  strictEqual(root.at(""), root);
  deepStrictEqual([...root.at("round/3").children.keys()], ["score#17"]);
});

Deno.test("Entry.drop() forgets one child, or all", () => {
  const entry = new Entry("work");
  for (const name of ["a", "b", "c"]) entry.child(name);
  entry.drop("b");
  deepStrictEqual([...entry.children.keys()], ["a", "c"]);
  entry.drop();
  strictEqual(entry.children.size, 0);
});

Deno.test("Entry.take() counts an intent as an attempt, and keeps the newest result", () => {
  const entry = taken([
    row(1, "intent", { input_hash: "h", value: '{"attempt":1}' }),
    row(2, "checkpoint", { value: "1" }),
    row(3, "intent", { input_hash: "h", value: '{"attempt":2}' }),
    row(4, "checkpoint", { value: "2" }),
    row(5, "result", { input_hash: "h", value: '{"output":7}' }),
  ]);
  deepStrictEqual([entry.attempts, entry.intent, entry.input_hash], [2, '{"attempt":2}', "h"]);
  deepStrictEqual([entry.result, entry.recorded_seq], ['{"output":7}', 5]);
  deepStrictEqual(entry.checkpoints, ["1", "2"]);
});

Deno.test("Entry.take() of an intent with a new input drops the older result", () => {
  const before = [
    row(1, "intent", { input_hash: "old" }),
    row(2, "result", { input_hash: "old", value: '{"output":7}' }),
  ];
  strictEqual(taken([...before, row(3, "intent", { input_hash: "old" })]).result, '{"output":7}');
  const entry = taken([...before, row(3, "intent", { input_hash: "new" })]);
  deepStrictEqual([entry.result, entry.input_hash, entry.recorded_seq], [undefined, "new", 3]);
});

Deno.test("Entry.take() counts failures after the newest resume, and no others", () => {
  const rows = [
    row(1, "failure", { value: failure("infrastructure", 5) }),
    row(2, "failure", { value: failure("infrastructure", null) }),
    row(4, "failure", { value: failure("infrastructure", 9) }),
  ];
  deepStrictEqual(taken(rows).failures.map(({ next_ms }) => next_ms), [5, null, 9]);
  deepStrictEqual(taken(rows, 3).failures.map(({ next_ms }) => next_ms), [9]);
});

Deno.test("Entry.was_given_up is of what a person can fix: user code and bad data", () => {
  const isGivenUp = (cause: string, next_ms: number | null) =>
    taken([row(1, "failure", { value: failure(cause, next_ms) })], 1).was_given_up;
  deepStrictEqual(
    ["user_code", "bad_data", "infrastructure", "timeout"].map((cause) => isGivenUp(cause, null)),
    [true, true, false, false],
  );
  strictEqual(isGivenUp("user_code", 5), false);
});

Deno.test("Entry.tally() adds up the results here and below", () => {
  const entry = taken([row(1, "result", { value: '{"tally":{"read":2},"attempt":1,"output":0}' })]);
  entry.child("one").result = '{"tally":{"read":3,"kept":1},"attempt":1,"output":0}';
  entry.at("two/deep").result = '{"output":{"tally":{"read":100}}}';
  deepStrictEqual(entry.tally(), { read: 5, kept: 1 });
});

Deno.test("addTally() adds into the first and answers it", () => {
  const into = { a: 1 };
  strictEqual(addTally(into, { a: 2, b: -1 }), into);
  deepStrictEqual(into, { a: 3, b: -1 });
});
