import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { EngineError, InvalidInputError } from "../../engine/errors.ts";
import { JOURNAL_VERSION } from "../../engine/stores/journal_version.ts";
import { BAD_IDS } from "./run_ids.ts";
import { type Declare, keys, LEASE, newOwner, newRun, row } from "./store_rows.ts";

export function createTests(test: Declare): void {
  test("create() answers the head that head() and heads() show", async ({ store, clock }) => {
    const created = await store.create(newRun("a"));
    deepStrictEqual(created, {
      ...newRun("a"),
      status: "created",
      epoch: 0,
      last_seq: 0,
      owner: null,
      lease_until_ms: 0,
      requests: [],
      error: null,
      created_ms: clock.now(),
      updated_ms: clock.now(),
      queue: null,
      priority: 0,
      needs: {},
      parent: null,
      home: null,
      journal: JOURNAL_VERSION,
    });
    deepStrictEqual(await store.head("a"), created);
    await store.create(newRun("b"));
    await store.create(newRun("c"));
    deepStrictEqual((await store.heads()).map((head) => head.id), ["c", "b", "a"]);
    deepStrictEqual((await store.heads({ limit: 1 })).map((head) => head.id), ["c"]);
  });

  test("create() keeps queue, priority, needs, parent and home", async ({ store }) => {
    const run = {
      ...newRun("a"),
      queue: "night",
      priority: -3,
      needs: { gpu: 4 },
      parent: { run: "b", round: 2, seq: 41 },
      home: "h",
    };
    const created = await store.create(run);
    deepStrictEqual({ ...created, ...run }, created);
    deepStrictEqual(await store.head("a"), created);
  });

  test("create() with rows starts the journal with them", async ({ store, clock }) => {
    const created = await store.create(newRun("a"), [
      row("x", { input_hash: "f00" }),
      row("y", { kind: "round" }),
    ]);
    deepStrictEqual([created.last_seq, created.epoch, await store.head("a")], [2, 0, created]);
    const at_ms = clock.now();
    deepStrictEqual(await store.read("a"), [
      { ...row("x", { input_hash: "f00" }), seq: 1, epoch: 0, at_ms },
      { ...row("y", { kind: "round" }), seq: 2, epoch: 0, at_ms },
    ]);
    await rejects(store.create(newRun("a"), [row("z")]), EngineError);
    const { head } = await store.claim("a", newOwner("one"), LEASE);
    deepStrictEqual(await store.append("a", head.epoch, [row("z")]), {
      fenced: false,
      last_seq: 3,
    });
    deepStrictEqual(await keys(store, "a"), ["x", "y", "z"]);
  });

  test("create() refuses an id that is taken and keeps the first run", async ({ store }) => {
    await store.create(newRun("a"));
    await rejects(store.create({ ...newRun("a"), name: "other" }), EngineError);
    strictEqual((await store.head("a"))?.name, "run a");
  });
}

export function identityTests(test: Declare): void {
  test("identity() is the journal's own, and stays", async ({ store, second }) => {
    const identity = await store.identity();
    ok(/^[0-9a-f-]{32,36}$/.test(identity.id), identity.id);
    await store.create(newRun("a"));
    deepStrictEqual(await store.identity(), identity);
    if (second) {
      const other = second();
      deepStrictEqual(await other.identity(), identity);
      await other.close();
    }
  });

  test("a run with an invalid id is refused", async ({ store }) => {
    for (const id of BAD_IDS) {
      await rejects(store.create(newRun(id)), /as a run's id: .*Fix: /);
      await rejects(store.head(id), /as a run's id: .*Fix: /);
      await rejects(store.claim(id, newOwner("one"), LEASE), InvalidInputError);
      await rejects(store.request(id, "cancel"), InvalidInputError);
    }
    deepStrictEqual(await store.heads(), []);
  });

  test("a missing run is null to head() and an error to writers", async ({ store }) => {
    strictEqual(await store.head("none"), null);
    await rejects(store.append("none", 1, [row("x")]), EngineError);
    await rejects(store.claim("none", newOwner("one"), LEASE), EngineError);
    await rejects(store.request("none", "cancel"), EngineError);
    deepStrictEqual(await store.read("none"), []);
  });
}
