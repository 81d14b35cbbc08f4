import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { EngineError } from "../../engine/errors.ts";
import { type Declare, LEASE, newOwner, newRun, row, started } from "./store_rows.ts";

export function finishTests(test: Declare): void {
  test("finish() ends the run, frees it and closes its epoch", async ({ store }) => {
    const epoch = await started(store);
    deepStrictEqual(await store.finish("a", epoch, "failed", '{"code":"x"}'), {
      fenced: false,
      status: "failed",
    });
    const head = await store.head("a");
    deepStrictEqual([head?.status, head?.owner, head?.error], ["failed", null, '{"code":"x"}']);
    deepStrictEqual(await store.append("a", epoch, [row("late")]), { fenced: true });
    deepStrictEqual(await store.renew("a", epoch, 10_000), { fenced: true });
    deepStrictEqual(await store.finish("a", epoch, "done"), { fenced: false, status: "failed" });
    deepStrictEqual(await store.finish("a", epoch - 1, "done"), { fenced: true });
  });

  test("a cancel before finish() wins; one after it changes nothing", async ({ store }) => {
    const first = await started(store, "first");
    const cancelled = await store.request("first", "cancel");
    deepStrictEqual([cancelled.status, cancelled.requests], ["running", ["cancel"]]);
    deepStrictEqual(await store.renew("first", first, 10_000), {
      fenced: false,
      requests: ["cancel"],
    });
    deepStrictEqual(await store.finish("first", first, "done"), {
      fenced: false,
      status: "cancelled",
    });

    const late = await started(store, "late");
    await store.finish("late", late, "done");
    strictEqual((await store.request("late", "cancel")).status, "done");
  });

  test("finish() and a cancel at once agree on one status", async ({ store, second }) => {
    for (let i = 0; i < 10; i++) {
      const epoch = await started(store, `r${i}`);
      const asker = second?.() ?? store;
      const finish = () => store.finish(`r${i}`, epoch, "done");
      const cancel = () => asker.request(`r${i}`, "cancel");
      const [first, other] = i % 2 ? [finish(), cancel()] : [cancel(), finish()];
      await Promise.all([first, other]);
      const ended = await (i % 2 ? first : other);
      const head = await store.head(`r${i}`);
      deepStrictEqual(ended, { fenced: false, status: head?.status });
      // Which came first is the server's to say.
      ok(head?.status === "done" || head?.status === "cancelled");
    }
  });
}

export function signalTests(test: Declare): void {
  test("signal() needs no owner and keeps the first value", async ({ store, second }) => {
    const other = second?.() ?? store;
    await store.create(newRun("a"));
    const signals = async () =>
      (await store.read("a", { kinds: ["signal"] })).map((
        { key, value, epoch },
      ) => [key, value, epoch]);
    await other.signal("a", "go", "1");
    const { epoch } = (await store.claim("a", newOwner("one"), LEASE)).head;
    await store.append("a", epoch, [row("x")]);
    await Promise.all([
      store.append("a", epoch, [row("y")]),
      other.signal("a", "stop", "true"),
      store.append("a", epoch, [row("z")]),
    ]);
    await other.signal("a", "go", "2");
    deepStrictEqual(await signals(), [["go", "1", 0], ["stop", "true", epoch]]);
    const rows = await store.read("a");
    deepStrictEqual(rows.filter(({ kind }) => kind !== "signal").map(({ key }) => key), [
      "x",
      "y",
      "z",
    ]);
    deepStrictEqual(rows.map(({ seq }) => seq), [1, 2, 3, 4, 5]);
    await store.finish("a", epoch, "done");
    strictEqual((await other.signal("a", "late", "1")).status, "done");
    strictEqual((await signals()).length, 2);
    await rejects(store.signal("none", "go", "1"), EngineError);
  });
}

export function releaseTests(test: Declare): void {
  test("requests are kept once; the next owner inherits only a cancel", async ({ store }) => {
    await started(store);
    await store.request("a", "drain");
    await store.request("a", "cancel");
    deepStrictEqual((await store.request("a", "drain")).requests, ["drain", "cancel"]);
    const { head } = await store.claim("a", newOwner("two"), { ...LEASE, force: true });
    deepStrictEqual(head.requests, ["cancel"]);
  });

  test("a run that nobody owns is cancelled at once, and never drained", async ({ store }) => {
    await store.create(newRun("a"));
    deepStrictEqual((await store.request("a", "drain")).requests, []);
    strictEqual((await store.request("a", "cancel")).status, "cancelled");
    strictEqual((await store.claim("a", newOwner("one"), LEASE)).claimed, false);
    const epoch = await started(store, "b");
    await store.release("b", epoch);
    strictEqual((await store.request("b", "cancel")).status, "cancelled");
  });

  test("release() gives the run back unfinished, to be claimed at once", async ({ store }) => {
    const epoch = await started(store);
    await store.release("a", epoch);
    const head = await store.head("a");
    deepStrictEqual([head?.status, head?.owner, head?.epoch], ["running", null, 1]);
    deepStrictEqual(await store.append("a", epoch, [row("late")]), { fenced: true });
    strictEqual((await store.claim("a", newOwner("two"), LEASE)).claimed, true);
    await store.release("a", epoch); // Superseded: must not take the run from its new owner.
    strictEqual((await store.head("a"))?.owner?.boot_id, "two");
  });

  test("release() with a cancel request open cancels the run", async ({ store }) => {
    const epoch = await started(store);
    await store.request("a", "cancel");
    await store.release("a", epoch);
    strictEqual((await store.head("a"))?.status, "cancelled");
  });

  test("reopen() is for the owner of a failed run, not of a done one", async ({ store }) => {
    const epoch = await started(store);
    await store.append("a", epoch, [row("x")]);
    await store.finish("a", epoch, "failed", "{}");
    deepStrictEqual(await store.reopen("a", epoch), { fenced: true });
    const { claimed, head } = await store.claim("a", newOwner("two"), LEASE);
    deepStrictEqual([claimed, head.status, head.epoch], [true, "failed", 2]);
    deepStrictEqual(await store.reopen("a", 2), { fenced: false, last_seq: 1 });
    const opened = await store.head("a");
    deepStrictEqual([opened?.status, opened?.error], ["running", null]);
    await store.finish("a", 2, "done");
    strictEqual((await store.claim("a", newOwner("three"), LEASE)).claimed, false);
  });
}
