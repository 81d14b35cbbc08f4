import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import {
  type Graph,
  type Liveness,
  ManualClock,
  type Outcome,
  type Owner,
  type Taken,
} from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import {
  guarded,
  LEASE_MS,
  pass,
  passing,
  type Serving,
  serving,
  statuses,
  withRuns,
} from "./serving.ts";

type Work = (taken: Taken<Graph> & { store: MemoryStore; clock: ManualClock }) => Promise<unknown>;

/** Engines that die as soon as they have taken a run and done `work`, one after the other. */
async function dying(names: string[], work: Work) {
  const { clock, store } = await withRuns(["a"]);
  const dead = new Set<string>();
  const alive = ({ boot_id }: Owner): Liveness => dead.has(boot_id) ? "dead" : "alive";
  let last: Serving | undefined;
  for (const name of names) {
    const died = Promise.withResolvers<void>();
    const execute = async (taken: Taken<Graph>) => {
      await work({ ...taken, store, clock });
      died.resolve();
      return await new Promise<Outcome>(() => {});
    };
    const engine = last = serving({ store, clock, name }, { execute, alive });
    await Promise.race([died.promise, passing(clock, engine.served)]);
    dead.add(name);
  }
  return { store, last: last! };
}

Deno.test("a frozen engine loses its run by the lease, and writes nothing later", async () => {
  const { clock, store } = await withRuns(["a"]);
  // Frozen: its clock does not go on, so that it extends no lease.
  const frozen = new ManualClock(clock.now());
  const one = serving({ store, clock: frozen });
  const task = await one.workers.task("a/work#1");
  const since = clock.now();
  const two = serving({ store, clock, name: "two" });
  await pass(clock, LEASE_MS - 500);
  deepStrictEqual(two.runsOf("taken"), []);
  await pass(clock, 1500);
  deepStrictEqual(two.runsOf("taken"), ["a"]);
  ok(clock.now() - since <= LEASE_MS + 1000);
  const rows = store.rows("a").length;
  task.finish("too late");
  await frozen.advance(2000);
  deepStrictEqual(one.events.at(-1), {
    type: "ended",
    run: "a",
    status: "fenced",
    error: undefined,
  });
  deepStrictEqual(store.rows("a").slice(rows).filter(({ epoch }) => epoch === 1), []);
  for (const key of ["a/work#1", "a/work#2"]) (await two.workers.task(key)).finish("made");
  await passing(clock, two.served);
  deepStrictEqual(await statuses(store), { a: "done" });
  one.drain.abort();
  await one.served;
});

Deno.test("a run fails after three takeovers that recorded nothing", async () => {
  const { store, last } = await dying(
    ["1", "2", "3", "4", "5"],
    ({ clock }) => clock.advance(11_000),
  );
  const takeovers = store.rows("a").filter(({ kind }) => kind === "note/takeover").map((
    { value },
  ) => JSON.parse(value));
  deepStrictEqual(takeovers.map(({ epoch, fruitless }) => [epoch, fruitless]), [[1, 0], [2, 1], [
    3,
    2,
  ]]);
  const { status, error } = (await store.head("a"))!;
  strictEqual(status, "failed");
  match(error!, /its engine died or froze, and so did the 3 engines that took it over/);
  deepStrictEqual(last.events.map(({ type }) => type), ["taken", "ended"]);
});

Deno.test("of engines that ended before they could work, it takes twenty", async () => {
  const names = Array.from({ length: 19 }, (_, n) => String(n));
  strictEqual(
    (await (await dying(names, () => Promise.resolve())).store.head("a"))!.status,
    "running",
  );
  const more = [...names, "19", "20", "21", "22"];
  strictEqual(
    (await (await dying(more, () => Promise.resolve())).store.head("a"))!.status,
    "failed",
  );
});

Deno.test("a run whose engines die is never given up while each brings it on", async () => {
  const { store } = await dying(
    ["1", "2", "3", "4", "5", "6", "7"],
    ({ store, head }) =>
      store.append(head.id, head.epoch, [{
        kind: "result",
        key: `part${head.epoch}`,
        value: "{}",
      }]),
  );
  strictEqual((await store.head("a"))!.status, "running");
});

type Mortal = Serving & { die: () => void };

/** A host on which engines start and die. */
function host(store: MemoryStore, clock: ManualClock) {
  const dead = new Set<string>();
  const alive = ({ boot_id }: Owner): Liveness => dead.has(boot_id) ? "dead" : "alive";
  let started = 0;
  const start = (): Mortal => {
    const name = `engine${started++}`;
    const dies = guarded(store, () => dead.has(name) ? new Crashed() : undefined);
    const engine = serving({ store: dies, clock, name }, {
      concurrency: 2,
      slots: { gpu: 2 },
      until_idle: false,
      alive,
    });
    return { ...engine, die: () => dead.add(name) };
  };
  return { start, alive };
}

/** Every run is done, or failed because its engines died; no completed stage has begun again. */
async function checkEnds(store: MemoryStore): Promise<void> {
  for (const [run, status] of Object.entries(await statuses(store))) {
    if (status === "failed") match((await store.head(run))!.error!, /its engine died/);
    else strictEqual(status, "done");
    const results = store.rows(run).filter(({ kind }) => kind === "result");
    const ended = new Map(results.map(({ key, seq }) => [key, seq]));
    strictEqual(ended.size, results.length, `a stage of '${run}' has two results`);
    for (const { kind, key, seq } of store.rows(run)) {
      if (kind !== "intent") continue;
      ok(seq < (ended.get(key) ?? Infinity), "a completed stage began again");
    }
  }
}

async function isOpen(store: MemoryStore): Promise<boolean> {
  const open = ["created", "running"];
  return Object.values(await statuses(store)).some((status) => open.includes(status));
}

Deno.test("engines that die at random end every run once and redo nothing", async () => {
  const steps = fc.array(
    fc.record({
      engine: fc.nat(2),
      act: fc.constantFrom("finish", "kill", "wait"),
      pick: fc.nat(5),
    }),
    {
      minLength: 5,
      maxLength: 30,
    },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (steps) => {
      const { clock, store } = await withRuns(["a", "b", "c"], { needs: { gpu: 1 } });
      const { start, alive } = host(store, clock);
      const engines = [start(), start(), start()];
      for (const { engine, act, pick } of steps) {
        await clock.advance(1000);
        if (act === "kill") {
          engines[engine]!.die();
          engines[engine]!.drain.abort();
          engines[engine] = start();
        } else if (act === "finish") {
          const open = [...engines[engine]!.workers.open.values()];
          open[pick % Math.max(1, open.length)]?.finish("made");
        }
        const running = (await store.heads()).filter(({ owner }) =>
          owner !== null && alive(owner) === "alive"
        );
        ok(running.length <= 2, "more runs than the host has slots");
      }
      for (let i = 0; i < 60 && await isOpen(store); i++) {
        await clock.advance(1000);
        for (const { workers } of engines) {
          for (const task of [...workers.open.values()]) task.finish("made");
        }
      }
      for (const { drain } of engines) drain.abort();
      await clock.advance(1000);
      await checkEnds(store);
    }),
    { numRuns: 8 },
  );
});
