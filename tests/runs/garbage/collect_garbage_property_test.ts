import { deepStrictEqual, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { ArtifactStore } from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { collectGarbage, type GcOptions, Home } from "../../../runs/mod.ts";
import { createFakeRun, executeFake, forkFake as fork, freshFakeHome, seen } from "../fake_home.ts";

/** Nothing of a test is an hour old. */
const ALL: GcOptions = { younger_than_ms: -60_000 };

Deno.test("gc leaves every run as it was, even if it is killed at any write", async () => {
  const plans = fc.record({
    cut: fc.integer({ min: 1, max: 60 }),
    killed: fc.integer({ min: 0, max: 3 }),
    first: fc.integer({ min: 0, max: 6 }),
    second: fc.integer({ min: 0, max: 6 }),
    keep_last: fc.integer({ min: 1, max: 3 }),
    execute: fc.array(fc.constantFrom("b", "c"), { maxLength: 2 }),
  });
  await fc.assert(
    fc.asyncProperty(plans, async ({ cut, killed, first, second, keep_last, execute }) => {
      const store = new MemoryStore();
      const home = await freshFakeHome(store);
      const reopened = (options = {}) =>
        new Home(home.dir, {
          store: store.restarted(options),
          artifacts: new ArtifactStore(home.artifacts.dir),
        });
      await createFakeRun(home, "a", { checkpoints: { every_rounds: 2, keep_last } });
      const whole = await seen(home, "a");
      await createFakeRun(home, "cut", { checkpoints: { every_rounds: 2, keep_last } });
      await executeFake(home, "cut", { store: store.restarted({ crash_after_appends: cut }) })
        .catch(expectCrash);
      await fork(reopened(), "a", { round: first, id: "b" });
      await fork(reopened(), "b", { round: second, id: "c" });
      for (const id of execute) deepStrictEqual(await seen(reopened(), id), whole);
      await collectGarbage(reopened({ crash_after_appends: killed }), { ...ALL, rows: true }).catch(
        expectCrash,
      );
      await collectGarbage(reopened(), { ...ALL, rows: true });
      strictEqual((await collectGarbage(reopened(), { ...ALL, rows: true })).bytes, 0);
      for (const id of ["a", "cut", "b", "c"]) {
        const again = await seen(reopened(), id);
        deepStrictEqual([id, again.digest, again.ledger], [id, whole.digest, whole.ledger]);
        const rounds = (await store.read(id, { kinds: ["round"] })).map(({ key }) =>
          Number(key.split("/")[1])
        );
        for (const round of new Set([rounds[0]!, rounds.at(-1)!])) {
          const of = `${round}-of-${id}`;
          await fork(reopened(), id, { round, id: of });
          strictEqual((await seen(reopened(), of)).digest, whole.digest);
        }
      }
    }),
    { numRuns: 8 },
  );
});

function expectCrash(error: unknown): void {
  if (!(error instanceof Crashed)) throw error;
}
