import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { FencedError } from "../../../engine/mod.ts";
import { Journal } from "../../../engine/journal/journal.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { artifacts } from "../fixtures.ts";

async function opened(
  store = new MemoryStore(),
): Promise<{ store: MemoryStore; journal: Journal; broken: Error[] }> {
  const names = {
    id: "run",
    name: "run",
    entry: "",
    graph: "{}",
    graph_hash: "",
    config: "{}",
    packages: "{}",
  };
  await store.create(names);
  const owner = { boot_id: "one", host: "host", pid: 1, process_start: "1" };
  const { head } = await store.claim("run", owner, { lease_ms: 1000 });
  const broken: Error[] = [];
  const onBroken = (error: Error) => void broken.push(error);
  return {
    store,
    broken,
    journal: new Journal({
      store,
      artifacts,
      run: "run",
      epoch: head.epoch,
      last_seq: 0,
      onBroken,
    }),
  };
}

const row = (key: string) => ({ kind: "result" as const, key, value: "{}" });

Deno.test("append() puts what is asked for in one moment into one commit, in order", async () => {
  const { store, journal } = await opened();
  await Promise.all([journal.append([row("a"), row("b")]), journal.append([row("c")])]);
  strictEqual(store.appends, 1);
  deepStrictEqual(store.rows("run").map(({ key }) => key), ["a", "b", "c"]);
});

Deno.test("defer() goes with the next append, or alone a turn later", async () => {
  const { store, journal } = await opened();
  journal.defer([row("intent")]);
  await journal.append([row("result")]);
  strictEqual(store.appends, 1);
  journal.defer([row("alone")]);
  await new Promise((resolve) => setTimeout(resolve, 1));
  await journal.idle();
  strictEqual(store.appends, 2);
});

Deno.test("faults see every durable commit before anybody sees its results", async () => {
  const seen: string[] = [];
  const { store, journal } = await opened();
  const faults = {
    at: (event: string, phase: string) => void seen.push(`${event} ${phase} ${store.appends}`),
  };
  const watched = new Journal({ ...journal.options, faults });
  await Promise.all([
    watched.append([row("a")]),
    watched.append([row("b")], "training").then(() => seen.push("seen")),
  ]);
  deepStrictEqual(seen, ["append training 1", "seen"]);
});

Deno.test("after a fence or a broken store nothing is appended any more", async () => {
  const fenced = await opened();
  await fenced.store.restarted().claim("run", {
    boot_id: "two",
    host: "h",
    pid: 2,
    process_start: "2",
  }, {
    lease_ms: 1,
  });
  await rejects(fenced.journal.append([row("a")]), FencedError);
  await rejects(fenced.journal.append([row("b")]), FencedError);
  strictEqual(fenced.broken.length, 1);
  const crashed = await opened(new MemoryStore({ crash_after_appends: 1 }));
  await crashed.journal.append([row("a")]);
  await rejects(
    Promise.all([crashed.journal.append([row("b")]), crashed.journal.append([row("c")])]),
    Crashed,
  );
  strictEqual(crashed.broken.length, 1);
  strictEqual(crashed.store.rows("run").length, 1);
});
