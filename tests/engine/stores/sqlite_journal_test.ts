import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { ManualClock } from "../../../engine/clock.ts";
import { SqliteJournal } from "../../../engine/stores/sqlite_journal.ts";
import { LEASE, newOwner, newRun, row } from "../../contracts/store_rows.ts";

Deno.test("SqliteJournal.alone() undoes a write that fails half-way, and nothing else", () => {
  const journal = SqliteJournal.inMemory(new ManualClock());
  journal.create(newRun("a"));
  const { epoch } = journal.claim("a", newOwner("one"), LEASE).head;
  const { db } = journal.options;
  db.exec("BEGIN");
  journal.alone(() => journal.append("a", epoch, [row("x")]));
  const broken = { ...row("y"), value: null as unknown as string };
  throws(() => journal.alone(() => journal.append("a", epoch, [row("kept?"), broken])), /NOT NULL/);
  journal.alone(() => journal.append("a", epoch, [row("z")]));
  db.exec("COMMIT");
  deepStrictEqual(journal.read("a").map(({ seq, key }) => [seq, key]), [[1, "x"], [2, "z"]]);
});

Deno.test("SqliteJournal.inMemory() is as old as its clock says, and nobody else's", () => {
  const clock = new ManualClock();
  const [one, other] = [SqliteJournal.inMemory(clock), SqliteJournal.inMemory(clock)];
  strictEqual(one.identity().since_ms, clock.now());
  one.create(newRun("a"));
  strictEqual(other.head("a"), null);
});
