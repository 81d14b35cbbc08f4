import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import {
  defineStage,
  Engine,
  type Graph,
  graph,
  InfrastructureError,
  type Liveness,
  ManualClock,
  type Outcome,
  type Owner,
  provide,
  type ServeEvent,
  type ServeOptions,
  serveQueues,
  type Taken,
} from "../../engine/mod.ts";
import { Crashed, FakeWorkers, MemoryStore } from "../../testing/mod.ts";
import { artifacts, NoConfig, Sampler } from "./fixtures.ts";

const LEASE_MS = 8000;
const QUEUES = { default: Infinity };

const work = defineStage({
  name: "work",
  version: 1,
  runs_on: "sampler",
  input: z.strictObject({ item: z.number() }),
  output: z.unknown(),
  run: (input, ctx) => ctx.resource(Sampler).run({ key: `${ctx.run}/${ctx.key}`, signal: ctx.signal }, input),
});
const list = defineStage({
  name: "list",
  version: 1,
  input: z.strictObject({}),
  output: z.array(z.number()),
  run: () => [1, 2],
});
const definition = graph("two", NoConfig, (g) => g.map(work, g.stage(list, {}), {}));
const built = definition.build({});

type Serving = {
  owner: Owner;
  workers: FakeWorkers;
  events: ServeEvent[];
  drain: AbortController;
  served: Promise<void>;
  said: (type: ServeEvent["type"]) => string[];
};

function ownerOf(name: string): Owner {
  return { boot_id: name, host: "host", pid: 7, process_start: name };
}

/** One engine on a store, with workers that wait for the test unless `answer` is given. */
function serving(
  { store, clock, name = "one" }: { store: MemoryStore; clock: ManualClock; name?: string },
  given: Partial<ServeOptions<Graph>> & { answer?: (task: { key: string; input: unknown }) => unknown } = {},
): Serving {
  const { answer, ...options } = given;
  const [owner, workers, drain] = [ownerOf(name), new FakeWorkers(answer), new AbortController()];
  const events: ServeEvent[] = [];
  const shared = { store, clock, owner, lease_ms: LEASE_MS };
  const execute = async ({ head, graph }: Taken<Graph>, signal: AbortSignal): Promise<Outcome> => {
    const resources = [provide(Sampler, workers)];
    return await new Engine({ ...shared, artifacts, resources }).execute(head.id, graph, {
      claimed: head,
      drain: signal,
    });
  };
  const served = serveQueues({
    ...shared,
    queues: QUEUES,
    look: () => Promise.resolve({ graph: built }),
    execute,
    until_idle: true,
    alive: (): Liveness => "alive",
    onEvent: (event) => events.push(event),
    ...options,
  }, drain.signal);
  const said = (type: ServeEvent["type"]) => events.flatMap((e) => e.type === type && "run" in e ? [e.run] : []);
  return { owner, workers, events, drain, served, said };
}

async function withRuns(ids: string[], options: { queue?: string; needs?: Record<string, number> } = {}) {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const engine = new Engine({ store, artifacts, clock });
  for (const id of ids) await engine.create(definition, {}, { id, queue: "default", ...options });
  return { clock, store };
}

async function statuses(store: MemoryStore): Promise<Record<string, string>> {
  return Object.fromEntries((await store.heads()).reverse().map(({ id, status }) => [id, status]));
}

/** Lets time go on, half a second at once, so that what was woken can ask for its next sleep. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let i = 0; i < ms; i += 500) await clock.advance(500);
}

/** The store, asked through `refuse`: what it returns is thrown instead. */
function guarded(store: MemoryStore, refuse: (operation: string) => Error | undefined): MemoryStore {
  return new Proxy(store, {
    get(target, field: keyof MemoryStore) {
      const value = target[field];
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => {
        const error = refuse(field);
        return error ? Promise.reject(error) : (value as (...given: unknown[]) => unknown).apply(target, given);
      };
    },
  });
}

/** Lets time go on until the promise settles. */
async function passing<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
  let over = false;
  promise.finally(() => over = true).catch(() => {});
  for (let i = 0; i < 1000 && !over; i++) await clock.advance(500);
  return await promise;
}

Deno.test("serveQueues() runs what is queued, as many at once as it may, and leaves what is in no queue of its own", async () => {
  const { clock, store } = await withRuns(["a", "b", "c"]);
  const engine = new Engine({ store, artifacts, clock });
  await engine.create(definition, {}, { id: "mine" });
  await engine.create(definition, {}, { id: "elsewhere", queue: "gpu" });
  let open = 0;
  let most = 0;
  const execute = async () => {
    most = Math.max(most, ++open);
    await clock.sleep(100);
    open--;
    return { status: "failed", error: {} } as Outcome;
  };
  const finishing: ServeOptions<Graph>["execute"] = async (taken) => {
    const outcome = await execute();
    await store.finish(taken.head.id, taken.head.epoch, "done");
    return outcome;
  };
  const { served, said } = serving({ store, clock }, { concurrency: 2, execute: finishing });
  await passing(clock, served);
  deepStrictEqual(said("taken"), ["a", "b", "c"]);
  strictEqual(most, 2);
  deepStrictEqual(await statuses(store), { a: "done", b: "done", c: "done", mine: "created", elsewhere: "created" });
});

Deno.test("serveQueues() leaves runs whose graph it does not have, and says so once", async () => {
  const { clock, store } = await withRuns(["a", "strange"]);
  const look = (run: { id: string }) =>
    run.id === "a" ? Promise.resolve({ graph: built }) : Promise.reject(new Error("no such module"));
  const { served, events, drain } = serving({ store, clock }, { look, until_idle: false, answer: () => 1 });
  await pass(clock, 10_000);
  drain.abort();
  await served;
  deepStrictEqual(events.filter(({ type }) => type === "refused"), [
    { type: "refused", run: "strange", reason: "no such module" },
  ]);
  deepStrictEqual(await statuses(store), { a: "done", strange: "created" });
});

Deno.test("serveQueues() leaves a run that this host can never hold, says what it lacks, and does not wait for it", async () => {
  const { clock, store } = await withRuns(["large"], { needs: { gpu: 4 } });
  const { served, events } = serving({ store, clock }, { slots: { gpu: 2 } });
  await passing(clock, served);
  deepStrictEqual(events, [{
    type: "refused",
    run: "large",
    reason: "Cannot run 'large' on this host: it needs 4 of 'gpu', this host has 2",
  }]);
});

Deno.test("a run that fails stays failed; one that throws before it starts fails too", async () => {
  const { clock, store } = await withRuns(["a", "b"]);
  const answer = () => {
    throw new TypeError("bug");
  };
  await passing(clock, serving({ store, clock }, { answer }).served);
  const execute = () => Promise.reject(new TypeError("rows are broken"));
  const engine = new Engine({ store, artifacts, clock });
  await engine.create(definition, {}, { id: "c", queue: "default" });
  const { served, events } = serving({ store, clock }, { execute });
  await passing(clock, served);
  deepStrictEqual(await statuses(store), { a: "failed", b: "failed", c: "failed" });
  match((await store.head("c"))!.error!, /rows are broken/);
  deepStrictEqual(events.map(({ type }) => type), ["taken", "ended"]);
});

Deno.test("a run whose journal makes no sense fails, and is not taken again and again", async () => {
  const { clock, store } = await withRuns(["a"]);
  const { head } = await store.claim("a", ownerOf("before"), { lease_ms: LEASE_MS });
  await store.append("a", head.epoch, [{ kind: "failure", key: "list", value: "{" }]);
  await store.release("a", head.epoch);
  const { drain, served, said } = serving({ store, clock });
  await pass(clock, 10_000);
  drain.abort();
  await served;
  deepStrictEqual([said("taken"), await statuses(store)], [["a"], { a: "failed" }]);
});

Deno.test("what the machine could not do is tried again, less and less often, and by any engine", async () => {
  const { clock, store } = await withRuns(["a"]);
  const times: number[] = [];
  const execute = () => {
    times.push(clock.monotonic());
    return Promise.reject(new InfrastructureError("the disk is full"));
  };
  const { drain, served } = serving({ store, clock }, { execute });
  await pass(clock, 15_000);
  drain.abort();
  await served;
  deepStrictEqual(times.slice(1).map((at, i) => at - times[i]!), [1000, 2000, 4000]);
  await passing(clock, serving({ store, clock, name: "two" }, { answer: () => 1 }).served);
  deepStrictEqual(await statuses(store), { a: "done" });
});

Deno.test("a drained engine gives its runs back, and another goes on with what was recorded", async () => {
  const { clock, store } = await withRuns(["a"]);
  const one = serving({ store, clock });
  const task = await one.workers.task("a/work#1");
  one.drain.abort();
  task.finish("kept");
  await passing(clock, one.served);
  deepStrictEqual([(await store.head("a"))!.owner, (await store.head("a"))!.status], [null, "running"]);
  const two = serving({ store, clock, name: "two" }, { answer: () => "made" });
  await passing(clock, two.served);
  deepStrictEqual(two.workers.started, ["a/work#2"]);
  deepStrictEqual(await statuses(store), { a: "done" });
});

Deno.test("an engine that is frozen loses its run within lease and poll, and when it wakes it writes nothing", async () => {
  const { clock, store } = await withRuns(["a"]);
  // Frozen: its clock does not go on, so that it extends no lease.
  const frozen = new ManualClock(clock.now());
  const one = serving({ store, clock: frozen });
  const task = await one.workers.task("a/work#1");
  const since = clock.now();
  const two = serving({ store, clock, name: "two" });
  await pass(clock, LEASE_MS - 500);
  deepStrictEqual(two.said("taken"), []);
  await pass(clock, 1500);
  deepStrictEqual(two.said("taken"), ["a"]);
  ok(clock.now() - since <= LEASE_MS + 1000);
  const rows = store.rows("a").length;
  task.finish("too late");
  await frozen.advance(2000);
  deepStrictEqual(one.events.at(-1), { type: "ended", run: "a", status: "fenced", error: undefined });
  deepStrictEqual(store.rows("a").slice(rows).filter(({ epoch }) => epoch === 1), []);
  for (const key of ["a/work#1", "a/work#2"]) (await two.workers.task(key)).finish("made");
  await passing(clock, two.served);
  deepStrictEqual(await statuses(store), { a: "done" });
  one.drain.abort();
  await one.served;
});

type Work = (given: Taken<Graph> & { store: MemoryStore; clock: ManualClock }) => Promise<unknown>;

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

Deno.test("a run whose engines die of it is failed after three takeovers that brought nothing", async () => {
  const { store, last } = await dying(["1", "2", "3", "4", "5"], ({ clock }) => clock.advance(11_000));
  const takeovers = store.rows("a").filter(({ kind }) => kind === "note/takeover").map(({ value }) =>
    JSON.parse(value)
  );
  deepStrictEqual(takeovers.map(({ epoch, fruitless }) => [epoch, fruitless]), [[1, 0], [2, 1], [3, 2]]);
  const { status, error } = (await store.head("a"))!;
  strictEqual(status, "failed");
  match(error!, /its engine died or froze, and so did the 3 that took it over/);
  deepStrictEqual(last.events.map(({ type }) => type), ["taken", "ended"]);
});

Deno.test("engines that were ended before they had time to work count for nothing, until there are twenty of them", async () => {
  const names = Array.from({ length: 19 }, (_, n) => String(n));
  strictEqual((await (await dying(names, () => Promise.resolve())).store.head("a"))!.status, "running");
  const more = [...names, "19", "20", "21", "22"];
  strictEqual((await (await dying(more, () => Promise.resolve())).store.head("a"))!.status, "failed");
});

Deno.test("a run whose engines die is never given up while each brings it on", async () => {
  const { store } = await dying(
    ["1", "2", "3", "4", "5", "6", "7"],
    ({ store, head }) => store.append(head.id, head.epoch, [{ kind: "result", key: `part${head.epoch}`, value: "{}" }]),
  );
  strictEqual((await store.head("a"))!.status, "running");
});

Deno.test("a store that is out of reach for a while ends nothing", async () => {
  const { clock, store } = await withRuns(["a"]);
  let broken = true;
  const refused = new InfrastructureError("connection refused");
  const flaky = guarded(store, (operation) => broken && operation === "dequeue" ? refused : undefined);
  const { served, events } = serving({ store: flaky, clock }, { answer: () => 1 });
  await pass(clock, 3000);
  broken = false;
  await passing(clock, served);
  strictEqual(events.filter(({ type }) => type === "trouble").length, 3);
  deepStrictEqual(await statuses(store), { a: "done" });
});

Deno.test("a run that could be neither finished nor given back stays this engine's, which takes it up again", async () => {
  const { clock, store } = await withRuns(["a"]);
  const refused = new InfrastructureError("connection refused");
  const flaky = guarded(store, (operation) => operation === "release" ? refused : undefined);
  let tries = 0;
  const execute = async ({ head }: Taken<Graph>): Promise<Outcome> => {
    if (++tries === 1) throw refused;
    await store.finish(head.id, head.epoch, "done");
    return { status: "done", output: null };
  };
  const { served, events } = serving({ store: flaky, clock }, { execute });
  await passing(clock, served);
  deepStrictEqual(events.map(({ type }) => type), ["taken", "put_off", "trouble", "taken", "ended"]);
  deepStrictEqual(await statuses(store), { a: "done" });
  deepStrictEqual(store.rows("a"), []); // It took nothing over: the run was its own.
});

Deno.test("several engines on one store, dying at random: every run ends once, nothing is done twice", async () => {
  const steps = fc.array(
    fc.record({ engine: fc.nat(2), act: fc.constantFrom("finish", "kill", "wait"), pick: fc.nat(5) }),
    {
      minLength: 5,
      maxLength: 30,
    },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (steps) => {
      const { clock, store } = await withRuns(["a", "b", "c"], { needs: { gpu: 1 } });
      const dead = new Set<string>();
      const alive = ({ boot_id }: Owner): Liveness => dead.has(boot_id) ? "dead" : "alive";
      let made = 0;
      const start = () => {
        const name = `engine${made++}`;
        const crashing = { dead: false };
        const dies = guarded(store, () => crashing.dead ? new Crashed() : undefined);
        const engine = serving({ store: dies, clock, name }, {
          concurrency: 2,
          slots: { gpu: 2 },
          until_idle: false,
          alive,
        });
        return { ...engine, name, die: () => (crashing.dead = true, dead.add(name)) };
      };
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
        const running = (await store.heads()).filter(({ owner }) => owner !== null && alive(owner) === "alive");
        ok(running.length <= 2, "more runs than the host has slots");
      }
      const open = async () =>
        Object.values(await statuses(store)).some((status) => status === "created" || status === "running");
      for (let i = 0; i < 60 && await open(); i++) {
        await clock.advance(1000);
        for (const { workers } of engines) for (const task of [...workers.open.values()]) task.finish("made");
      }
      for (const { drain } of engines) drain.abort();
      await clock.advance(1000);
      for (const [run, status] of Object.entries(await statuses(store))) {
        if (status === "failed") match((await store.head(run))!.error!, /its engine died/);
        else strictEqual(status, "done");
        const results = store.rows(run).filter(({ kind }) => kind === "result").map(({ key }) => key);
        strictEqual(new Set(results).size, results.length);
        const firstResult = new Map(store.rows(run).filter((r) => r.kind === "result").map((r) => [r.key, r.seq]));
        for (const row of store.rows(run)) {
          if (row.kind === "intent") {
            ok(row.seq < (firstResult.get(row.key) ?? Infinity), "a completed stage began again");
          }
        }
      }
    }),
    { numRuns: 8 },
  );
});
