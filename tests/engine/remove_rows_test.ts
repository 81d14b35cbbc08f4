import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { removeRows, RunOwnedError } from "../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../testing/mod.ts";
import { newOwner, newRun, row } from "../contracts/store_rows.ts";

/** A run that is done, with rows a, b, c. */
async function ended(store: MemoryStore): Promise<void> {
  await store.create(newRun("a"), ["a", "b", "c"].map((key) => row(key)));
  const { head } = await store.claim("a", newOwner("one"), { lease_ms: 10_000 });
  await store.finish("a", head.epoch, "done");
}

const keys = async (store: MemoryStore) =>
  (await store.read("a")).map(({ kind, key }) => `${kind} ${key}`);
const removing = {
  lease_ms: 10_000,
  seqs: [1, 3],
  note: { why: "test" },
  holds: () => Promise.resolve(true),
};

Deno.test("removeRows() records first, then removes, and the run stays ended", async () => {
  const store = new MemoryStore();
  await ended(store);
  strictEqual(await removeRows(store, "a", removing), true);
  deepStrictEqual(await keys(store), ["result b", "note/gc rows"]);
  const { status, owner } = (await store.head("a"))!;
  deepStrictEqual([status, owner], ["done", null]);
});

Deno.test("removeRows() removes nothing if its plan no longer holds", async () => {
  const store = new MemoryStore();
  await ended(store);
  const holds = async () => (await store.read("a", { kinds: ["note/gc"] })).length === 0;
  strictEqual(await removeRows(store, "a", { ...removing, holds }), false);
  deepStrictEqual(await keys(store), ["result a", "result b", "result c", "note/gc rows"]);
});

Deno.test("removeRows() refuses a run that another live process is cleaning", async () => {
  const store = new MemoryStore();
  await ended(store);
  await store.claim("a", newOwner("other"), { lease_ms: 10_000, ended: true });
  await rejects(removeRows(store, "a", removing), RunOwnedError);
  const cut = store.restarted({ crash_after_appends: 1 });
  await rejects(removeRows(cut, "a", removing), Crashed);
  const again = store.restarted();
  strictEqual(await removeRows(again, "a", removing), true);
  deepStrictEqual(await keys(again), ["result b", "note/gc rows", "note/gc rows"]);
});
