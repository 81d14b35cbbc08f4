import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { checkLedger, ledgerOf } from "../../flows/mod.ts";

Deno.test("ledgerOf() groups reasons by prefix, and the rest is pending", () => {
  const tally = {
    read: 10,
    trained: 4,
    "filtered.zero_advantage": 2,
    "failed.b": 1,
    "failed.a": 1,
    unrelated: 5,
  };
  const ledger = ledgerOf(tally);
  deepStrictEqual(ledger, {
    read: 10,
    trained: 4,
    filtered: { zero_advantage: 2 },
    stale: 0,
    failed: { a: 1, b: 1 },
    pending: 2,
  });
  deepStrictEqual(Object.keys(ledger.failed), ["a", "b"]);
});

Deno.test("ledgerOf() always accounts for every draw that was read", () => {
  const counts = fc.dictionary(
    fc.constantFrom("read", "trained", "stale", "filtered.x", "filtered.y", "failed.x", "failed.z"),
    fc.nat(1000),
  );
  fc.assert(fc.property(counts, (tally) => {
    const { read, trained, filtered, stale, failed, pending } = ledgerOf(tally);
    const sum = (reasons: Record<string, number>) =>
      Object.values(reasons).reduce((a, b) => a + b, 0);
    strictEqual(read, trained + sum(filtered) + stale + sum(failed) + pending);
  }));
});

Deno.test("checkLedger() names the round and the draws that are in no state, or in two", () => {
  const check = (tally: Record<string, number>, carried = {}) =>
    checkLedger({ round: 7, tally, carried });
  strictEqual(check({ read: 2, trained: 1, "failed.x": 1 }), null);
  match(check({ read: 2, trained: 1 })!, /round 7 .* 1 draws/);
  match(check({ read: 2, trained: 3 })!, /-1 draws/);
  strictEqual(check({ read: 5, trained: 2 }, { draws: { pending: 3 } }), null);
  match(check({ read: 5, trained: 2 }, { draws: { pending: 2 } })!, / 1 draws/);
  match(check({ read: 5, trained: 5 }, { draws: { pending: 2 } })!, /-2 draws/);
});
