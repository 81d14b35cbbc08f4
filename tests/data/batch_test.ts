import { deepStrictEqual } from "node:assert/strict";
import { Batch, Column, GroupRef, ScoredColumn } from "../../data/mod.ts";

const artifact = { sha256: "a".repeat(64), bytes: 8 };
const group = { draw: 0, slab: artifact, index: 0, samples: [1, 0] };
const trajectories = { kind: "trajectories", groups: [group], columns: {}, updates: [[0]] };
const refused = (changes: Record<string, unknown>) =>
  Batch.safeParse({ ...trajectories, ...changes }).error?.issues.map(({ path }) => path.join("."));

Deno.test("an early record's Batch has temperature 1, no coefficients and no staleness", () => {
  deepStrictEqual(Batch.parse(trajectories), {
    ...trajectories,
    temperature: 1,
    coef: {},
    staleness: [],
  });
});

Deno.test("Batch keeps the order of its groups' samples, and of its steps", () => {
  const updates = [[1], [0]];
  const groups = [group, { ...group, draw: 1, index: 1, samples: [3, 2, 2] }];
  const read = Batch.parse({ ...trajectories, groups, updates });
  deepStrictEqual(read.updates, updates);
  deepStrictEqual(read.kind === "trajectories" && read.groups, groups);
});

Deno.test("Batch has a step, a temperature above 0, and masked sequences or no such field", () => {
  deepStrictEqual(refused({ updates: [] }), ["updates"]);
  deepStrictEqual(refused({ updates: [[-1]] }), ["updates.0.0"]);
  deepStrictEqual(refused({ temperature: 0 }), ["temperature"]);
  deepStrictEqual(refused({ masked: [] }), ["masked"]);
  deepStrictEqual(refused({ masked: [2] }), undefined);
});

Deno.test("Batch refuses the fields of a different kind", () => {
  const unknown = (batch: unknown) =>
    Batch.safeParse(batch).error?.issues.map((issue) => issue.message);
  const supervised = { kind: "supervised", rows: [], updates: [[0]] };
  deepStrictEqual(unknown(supervised), undefined);
  deepStrictEqual(unknown({ ...supervised, columns: {} }), ['Unrecognized key: "columns"']);
  deepStrictEqual(unknown({ ...trajectories, rows: [] }), ['Unrecognized key: "rows"']);
});

Deno.test("Column is a number per sequence or an artifact, never both", () => {
  const read = (column: unknown) => Column.safeParse(column).success;
  deepStrictEqual(
    [
      { kind: "sequence", values: [] },
      { kind: "token", artifact },
      { kind: "sequence", values: [NaN] },
      { kind: "sequence", values: [1], artifact },
      { kind: "token", values: [1] },
    ].map(read),
    [true, true, false, false, false],
  );
});

Deno.test("a group's place and a model's columns are named exactly", () => {
  deepStrictEqual(GroupRef.safeParse({ ...group, index: -1 }).success, false);
  deepStrictEqual(ScoredColumn.safeParse("logp").success, false, "the policy's is never recorded");
  deepStrictEqual(ScoredColumn.parse("old_logp"), "old_logp");
});
