import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { newOwner, newRun, row } from "../../contracts/store_rows.ts";
import { POSTGRES_MISSING, testSchema } from "../../postgres.ts";

const ROUNDS = 150;
const LEASE = { lease_ms: 60_000 };

Deno.test({
  name: "PostgreSQL: an append beside a claim comes before it, or writes nothing",
  ignore: POSTGRES_MISSING !== null,
  async fn() {
    const schema = testSchema();
    const [one, two] = [schema.open(), schema.open()];
    const seen = { before: 0, fenced: 0 };
    try {
      await one.create(newRun("a"));
      await one.claim("a", newOwner("one"), LEASE);
      let last_seq = 0;
      for (let i = 0; i < ROUNDS; i++) {
        const [stale, fresh] = i % 2 ? [two, one] : [one, two];
        const epoch = i + 1;
        const append = () => stale.append("a", epoch, [row(`${i}.1`), row(`${i}.2`)]);
        const early = i % 4 < 2 ? append() : null;
        const claiming = fresh.claim("a", newOwner(`o${i}`), { ...LEASE, force: true });
        const [appended, claimed] = await Promise.all([early ?? append(), claiming]);
        ok(claimed.claimed);
        strictEqual(claimed.head.epoch, epoch + 1);
        // The claim's answer is the state from which its owner goes on: what it does not count must
        // never appear.
        strictEqual(claimed.head.last_seq, appended.fenced ? last_seq : last_seq + 2);
        last_seq = claimed.head.last_seq;
        seen[appended.fenced ? "fenced" : "before"]++;
        strictEqual((await fresh.head("a"))?.last_seq, last_seq);
      }
      const rows = await one.read("a");
      deepStrictEqual(
        rows.map(({ seq }) => seq),
        Array.from({ length: last_seq }, (_, i) => i + 1),
      );
      ok(seen.before > 0 && seen.fenced > 0, `both must have happened: ${JSON.stringify(seen)}`);
    } finally {
      await schema.dispose();
    }
  },
});

Deno.test({
  name: "PostgreSQL: a stale append that waits for a claim's lock finds itself fenced",
  ignore: POSTGRES_MISSING !== null,
  async fn() {
    const schema = testSchema();
    const store = schema.open();
    try {
      await store.create(newRun("a"));
      await store.claim("a", newOwner("one"), LEASE);
      // A claim that has written and not committed: the window in which a bare INSERT ... WHERE
      // epoch slips through.
      await schema.sql("BEGIN; UPDATE runs SET epoch = epoch + 1");
      const stale = [
        store.append("a", 1, [row("one")]),
        store.append("a", 1, [row("two"), row("three")]),
      ];
      for (;;) {
        const waiting = await schema.sql(
          "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' " +
            "AND pg_blocking_pids(pid) @> ARRAY[pg_backend_pid()]",
        );
        if (waiting.length > 0) break;
      }
      await schema.sql("COMMIT");
      deepStrictEqual(await Promise.all(stale), [{ fenced: true }, { fenced: true }]);
      deepStrictEqual(await store.read("a"), []);
    } finally {
      await schema.dispose();
    }
  },
});
