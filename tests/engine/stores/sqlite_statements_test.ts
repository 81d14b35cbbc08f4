import { deepStrictEqual, match, throws } from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { createTables } from "../../../engine/stores/sqlite_schema.ts";
import * as statements from "../../../engine/stores/sqlite_statements.ts";

Deno.test("SQLite accepts every statement on a new database", () => {
  const db = new DatabaseSync(":memory:");
  try {
    createTables(db);
    for (const sql of Object.values(statements)) db.prepare(sql);
    throws(() => db.prepare(statements.CLAIM.replaceAll("epoch", "epochs")), /no such column/);
  } finally {
    db.close();
  }
});

Deno.test("what a run's owner changes needs its epoch; claims, requests and signals do not", () => {
  const updates = Object.entries(statements).filter(([, sql]) => sql.startsWith("UPDATE runs"));
  const unguarded = updates.filter(([, sql]) => !/epoch = :epoch/.test(sql)).map(([name]) => name);
  deepStrictEqual(unguarded.toSorted(), ["ADVANCE_TO_SIGNAL", "CLAIM", "REQUEST"]);
  match(statements.INSERT_RUN, /ON CONFLICT \(id\) DO NOTHING/);
});
