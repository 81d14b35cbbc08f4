import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { InvalidInputError } from "../../engine/errors.ts";
import { JOURNAL_VERSION } from "../../engine/stores/journal_version.ts";
import type { Choose, RunHead } from "../../engine/stores/store.ts";
import { type Declare, keys, LEASE, newOwner, newRun, row, started } from "./store_rows.ts";

export function claimTests(test: Declare): void {
  endedClaimTest(test);

  test("claim() raises the epoch, starts the run and sets the lease", async ({ store, clock }) => {
    await store.create(newRun("a"));
    const { claimed, head } = await store.claim("a", newOwner("one"), LEASE);
    strictEqual(claimed, true);
    deepStrictEqual([head.epoch, head.status, head.owner?.boot_id], [1, "running", "one"]);
    strictEqual(head.lease_until_ms, clock.now() + 10_000);
  });

  test("claim() waits for another owner's lease, not for one's own", async ({ store, clock }) => {
    await started(store);
    const refused = await store.claim("a", newOwner("two"), LEASE);
    deepStrictEqual([refused.claimed, refused.head.epoch, refused.head.owner?.boot_id], [
      false,
      1,
      "one",
    ]);
    strictEqual((await store.claim("a", newOwner("one"), LEASE)).head.epoch, 2);
    await clock.advance(10_000);
    const taken = await store.claim("a", newOwner("two"), LEASE);
    deepStrictEqual([taken.claimed, taken.head.epoch, taken.head.owner?.boot_id], [true, 3, "two"]);
  });

  test("claim() with force takes a fresh lease, but only of the epoch seen", async ({ store }) => {
    await started(store);
    const force = { ...LEASE, force: true, seen_epoch: 1 };
    strictEqual((await store.claim("a", newOwner("two"), force)).claimed, true);
    const late = await store.claim("a", newOwner("three"), force);
    deepStrictEqual([late.claimed, late.head.owner?.boot_id], [false, "two"]);
  });

  test("claim() refuses a journal of another version", async ({ store }) => {
    for (const journal of [JOURNAL_VERSION - 1, JOURNAL_VERSION + 1]) {
      const id = `of-${journal}`;
      const other = await store.create({ ...newRun(id), queue: "q", journal });
      const refused = await store.claim(id, newOwner("one"), { ...LEASE, force: true });
      deepStrictEqual(refused, { claimed: false, head: other });
      const choose = () => ({ run: id, force: true });
      strictEqual(await store.dequeue(newOwner("one"), { ...LEASE, choose }), null);
      deepStrictEqual(await store.head(id), other);
    }
  });
}

export function leaseTests(test: Declare): void {
  test("renew() extends the lease and fences a superseded owner", async ({ store, clock }) => {
    const epoch = await started(store);
    await clock.advance(9_000);
    deepStrictEqual(await store.renew("a", epoch, 10_000), { fenced: false, requests: [] });
    await clock.advance(9_000);
    strictEqual((await store.claim("a", newOwner("two"), LEASE)).claimed, false);
    await clock.advance(1_000);
    strictEqual((await store.claim("a", newOwner("two"), LEASE)).claimed, true);
    deepStrictEqual(await store.renew("a", epoch, 10_000), { fenced: true });
  });

  test("an owner that is late but not superseded keeps working", async ({ store, clock }) => {
    const epoch = await started(store);
    await clock.advance(60_000);
    deepStrictEqual(await store.append("a", epoch, [row("x")]), { fenced: false, last_seq: 1 });
    deepStrictEqual(await store.renew("a", epoch, 10_000), { fenced: false, requests: [] });
    strictEqual((await store.claim("a", newOwner("two"), LEASE)).claimed, false);
  });
}

export function dequeueTests(test: Declare): void {
  dequeueAtOnceTest(test);

  test("dequeue() shows unfinished runs by age and claims the chosen", async ({ store, clock }) => {
    await store.create({ ...newRun("a"), queue: "q" });
    await store.create({ ...newRun("b"), queue: "q", priority: 1 });
    const c = await started(store, "c");
    await store.finish("c", c, "done");
    const shown: RunHead[][] = [];
    const head = await store.dequeue(newOwner("one"), {
      ...LEASE,
      choose(runs, now_ms) {
        shown.push(runs);
        strictEqual(now_ms, clock.now());
        return { run: "b", force: false };
      },
    });
    deepStrictEqual(shown.map((runs) => runs.map(({ id, status }) => [id, status])), [[[
      "a",
      "created",
    ], [
      "b",
      "created",
    ]]]);
    deepStrictEqual([head?.id, head?.epoch, head?.status, head?.owner?.boot_id], [
      "b",
      1,
      "running",
      "one",
    ]);
    deepStrictEqual(await store.head("b"), head);
  });

  test("dequeue() answers null unless the choice is free or forced", async ({ store }) => {
    await started(store);
    const take = (force: boolean | null) =>
      store.dequeue(newOwner("two"), {
        ...LEASE,
        choose: () => force === null ? null : { run: "a", force },
      });
    strictEqual(await take(null), null);
    strictEqual(await take(false), null);
    strictEqual((await store.head("a"))?.epoch, 1);
    strictEqual((await take(true))?.owner?.boot_id, "two");
  });

  test("dequeue() passes on what choose() throws and claims nothing", async ({ store }) => {
    await store.create(newRun("a"));
    const choose = () => {
      throw new InvalidInputError("Cannot choose because this is a test");
    };
    await rejects(
      store.dequeue(newOwner("one"), { ...LEASE, choose }),
      /^InvalidInputError: Cannot choose/,
    );
    strictEqual((await store.head("a"))?.status, "created");
    strictEqual(
      (await store.dequeue(newOwner("one"), {
        ...LEASE,
        choose: () => ({ run: "a", force: false }),
      }))?.id,
      "a",
    );
  });
}

function endedClaimTest(test: Declare): void {
  test("claim() of an ended run needs `ended`, and the run stays ended", async ({ store }) => {
    for (const status of ["done", "cancelled"] as const) {
      const first = await started(store, status);
      await store.append(status, first, [row("x"), row("y")]);
      if (status === "cancelled") await store.request(status, "cancel");
      await store.finish(status, first, "done");
      strictEqual((await store.claim(status, newOwner("two"), LEASE)).claimed, false);
      const { claimed, head } = await store.claim(status, newOwner("two"), {
        ...LEASE,
        ended: true,
      });
      deepStrictEqual([claimed, head.status, head.epoch], [true, status, first + 1]);
      strictEqual(
        (await store.claim(status, newOwner("three"), { ...LEASE, ended: true })).claimed,
        false,
      );
      deepStrictEqual(await store.append(status, head.epoch, [row("z")]), {
        fenced: false,
        last_seq: 3,
      });
      await store.remove(status, head.epoch, [1]);
      await store.request(status, "cancel");
      await store.release(status, head.epoch);
      deepStrictEqual([(await store.head(status))?.status, (await store.head(status))?.owner], [
        status,
        null,
      ]);
      deepStrictEqual(await store.append(status, head.epoch, [row("stale")]), { fenced: true });
      deepStrictEqual(await keys(store, status), ["y", "z"]);
    }
  });
}

function dequeueAtOnceTest(test: Declare): void {
  test("of many that dequeue at once, each run goes to one", async ({ store, second }) => {
    for (const id of ["a", "b", "c"]) await store.create({ ...newRun(id), queue: "q" });
    const other = second?.() ?? store;
    const choose: Choose = (runs) => {
      const free = runs.find(({ status }) => status === "created");
      return free ? { run: free.id, force: false } : null;
    };
    const taken = await Promise.all(
      Array.from(
        { length: 5 },
        (_, i) => (i % 2 ? other : store).dequeue(newOwner(`p${i}`), { ...LEASE, choose }),
      ),
    );
    deepStrictEqual(taken.flatMap((head) => head?.id ?? []).sort(), ["a", "b", "c"]);
    ok(taken.every((head) => head === null || head.epoch === 1));
  });
}
