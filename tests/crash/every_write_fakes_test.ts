/**
 * A graph with every construct is killed at its n-th durable write, for every n, before the write
 * and after it, on the memory store and on SQLite. Killed: the engine hears nothing more from its
 * store, and another one goes on with what is there. `tests/engine/executor/crash_property_test.ts` draws
 * graphs and several crashes at random; `tests/simulation` adds time.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { SqliteStore, type Store } from "../../engine/mod.ts";
import { MemoryStore } from "../../testing/mod.ts";
import type { Plan } from "../simulation/workload.ts";
import { FULL, MEMORY_DIR, runThrough, SMALL } from "./fake_lives.ts";

/** Makes new stores; the lives of one run share one. */
type Stores = { opener(): () => Store; [Symbol.asyncDispose](): Promise<void> };

function memoryStores(): Stores {
  const opener = () => {
    const store = new MemoryStore();
    return () => store;
  };
  return { opener, [Symbol.asyncDispose]: () => Promise.resolve() };
}

async function sqliteStores(): Promise<Stores> {
  const dir = await Deno.makeTempDir({ prefix: "every-write-", dir: MEMORY_DIR });
  const opened: SqliteStore[] = [];
  const opener = () => {
    const store = new SqliteStore(`${dir}/${opened.length}.db`);
    opened.push(store);
    return () => store;
  };
  const close = async () => {
    for (const store of opened) await store.close();
    await Deno.remove(dir, { recursive: true });
  };
  return { opener, [Symbol.asyncDispose]: close };
}

async function killAtEveryWrite({ plan, stores }: { plan: Plan; stores: Stores }): Promise<void> {
  await using used = stores;
  const calm = await runThrough({ plan, open: used.opener() });
  strictEqual((calm.outcome as { status: string }).status, "done");
  ok(calm.watch.writes >= 15, `${calm.watch.writes} writes`);
  let killed = 0;
  for (let write = 1; write <= calm.watch.writes; write++) {
    for (const moment of ["before", "after"] as const) {
      const { outcome, digest, watch, lives } = await runThrough({
        plan,
        open: used.opener(),
        crashes: [{ write, moment }],
      });
      const where = `killed ${moment} write ${write}`;
      deepStrictEqual(outcome, calm.outcome, where);
      deepStrictEqual(digest, calm.digest, where);
      deepStrictEqual(watch.again, [], where);
      killed += lives - 1;
    }
  }
  // How rows share commits differs a little from run to run, so that the very last writes may not
  // be reached.
  ok(killed >= 2 * (calm.watch.writes - 3), `${killed} kills of ${2 * calm.watch.writes}`);
}

Deno.test("killed at every write, before and after it: equal state, nothing completed starts again (memory store)", async () => {
  await killAtEveryWrite({ plan: FULL, stores: memoryStores() });
  await killAtEveryWrite({ plan: { ...FULL, eager: true, lag: 2 }, stores: memoryStores() });
});

Deno.test("killed at every write, before and after it: equal state, nothing completed starts again (SQLite)", async () => {
  await killAtEveryWrite({ plan: SMALL, stores: await sqliteStores() });
});

Deno.test("engines that each die at their fourth write bring a run to its end", async () => {
  for (const moment of ["before", "after"] as const) {
    const calm = await runThrough({ plan: FULL, open: memoryStores().opener() });
    const crashes = Array.from({ length: 200 }, () => ({ write: 4, moment }));
    const killed = await runThrough({ plan: FULL, open: memoryStores().opener(), crashes });
    ok(killed.lives > 10, `${killed.lives} lives`);
    deepStrictEqual([killed.outcome, killed.digest, killed.watch.again], [
      calm.outcome,
      calm.digest,
      [],
    ]);
  }
});
