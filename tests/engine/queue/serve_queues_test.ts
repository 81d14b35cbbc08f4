import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import {
  Engine,
  type Graph,
  InfrastructureError,
  LostRecordError,
  type Outcome,
  type ServeOptions,
  type Taken,
} from "../../../engine/mod.ts";
import { artifacts } from "../fixtures.ts";
import {
  built,
  definition,
  guarded,
  LEASE_MS,
  ownerOf,
  pass,
  passing,
  serving,
  statuses,
  withRuns,
} from "./serving.ts";

Deno.test("serveQueues() runs its queues' runs, up to its limit at a time", async () => {
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
  const { served, runsOf } = serving({ store, clock }, { concurrency: 2, execute: finishing });
  await passing(clock, served);
  deepStrictEqual(runsOf("taken"), ["a", "b", "c"]);
  strictEqual(most, 2);
  deepStrictEqual(await statuses(store), {
    a: "done",
    b: "done",
    c: "done",
    mine: "created",
    elsewhere: "created",
  });
});

Deno.test("serveQueues() looks again at a run that another engine had meanwhile", async () => {
  const { clock, store } = await withRuns(["a", "b"]);
  const looked: string[] = [];
  const execute = async ({ head }: Taken<Graph>): Promise<Outcome> => {
    if (head.id === "a") {
      const { head: other } = await store.claim("b", ownerOf("other"), { lease_ms: LEASE_MS });
      await store.release("b", other.epoch);
    }
    await store.finish(head.id, head.epoch, "done");
    return { status: "cancelled" };
  };
  const look = ({ id, epoch }: { id: string; epoch: number }) => {
    looked.push(`${id} ${epoch}`);
    return Promise.resolve({ graph: built });
  };
  const { served, runsOf } = serving({ store, clock }, { look, execute });
  await passing(clock, served);
  deepStrictEqual(looked, ["a 0", "b 0", "b 1"]);
  deepStrictEqual(runsOf("taken"), ["a", "b"]);
});

Deno.test("serveQueues() leaves runs whose graph it does not have, and says so once", async () => {
  const { clock, store } = await withRuns(["a", "strange"]);
  const look = (run: { id: string }) =>
    run.id === "a"
      ? Promise.resolve({ graph: built })
      : Promise.reject(new Error("no such module"));
  const { served, events, drain } = serving({ store, clock }, {
    look,
    until_idle: false,
    answer: () => 1,
  });
  await pass(clock, 10_000);
  drain.abort();
  await served;
  deepStrictEqual(events.filter(({ type }) => type === "refused"), [
    { type: "refused", run: "strange", reason: "no such module" },
  ]);
  deepStrictEqual(await statuses(store), { a: "done", strange: "created" });
});

Deno.test("serveQueues() leaves a run too large for this host, and says why", async () => {
  const { clock, store } = await withRuns(["large"], { needs: { gpu: 4 } });
  const { served, events } = serving({ store, clock }, { slots: { gpu: 2 } });
  await passing(clock, served);
  deepStrictEqual(events, [{
    type: "refused",
    run: "large",
    reason: "Cannot run 'large' on this host: it needs 4 of 'gpu', this host has 2",
  }]);
});

Deno.test("a run that fails, or throws before it starts, stays failed", async () => {
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

Deno.test("a run whose journal makes no sense fails, and is taken only once", async () => {
  const { clock, store } = await withRuns(["a"]);
  const { head } = await store.claim("a", ownerOf("before"), { lease_ms: LEASE_MS });
  await store.append("a", head.epoch, [{ kind: "failure", key: "list", value: "{" }]);
  await store.release("a", head.epoch);
  const { drain, served, runsOf } = serving({ store, clock });
  await pass(clock, 10_000);
  drain.abort();
  await served;
  deepStrictEqual([runsOf("taken"), await statuses(store)], [["a"], { a: "failed" }]);
});

Deno.test("failures of the machine are retried with growing waits, by any engine", async () => {
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

Deno.test("a drained engine releases its runs; another resumes their records", async () => {
  const { clock, store } = await withRuns(["a"]);
  const one = serving({ store, clock });
  const task = await one.workers.task("a/work#1");
  one.drain.abort();
  task.finish("kept");
  await passing(clock, one.served);
  deepStrictEqual([(await store.head("a"))!.owner, (await store.head("a"))!.status], [
    null,
    "running",
  ]);
  const two = serving({ store, clock, name: "two" }, { answer: () => "made" });
  await passing(clock, two.served);
  deepStrictEqual(two.workers.started, ["a/work#2"]);
  deepStrictEqual(await statuses(store), { a: "done" });
});

Deno.test("a damaged run ends the serving with its name, as every look at the queue reads it", async () => {
  const { clock, store } = await withRuns(["a"]);
  const damaged = new LostRecordError("Cannot read run 'b' because its 'needs' is damaged");
  const broken = guarded(store, (operation) => operation === "dequeue" ? damaged : undefined);
  const { served, events } = serving({ store: broken, clock }, { answer: () => 1 });
  await rejects(passing(clock, served), damaged);
  deepStrictEqual(events.map(({ type }) => type), ["trouble"]);
});

Deno.test("a store that is out of reach for a while ends nothing", async () => {
  const { clock, store } = await withRuns(["a"]);
  let broken = true;
  const refused = new InfrastructureError("connection refused");
  const flaky = guarded(
    store,
    (operation) => broken && operation === "dequeue" ? refused : undefined,
  );
  const { served, events } = serving({ store: flaky, clock }, { answer: () => 1 });
  await pass(clock, 3000);
  broken = false;
  await passing(clock, served);
  strictEqual(events.filter(({ type }) => type === "trouble").length, 3);
  deepStrictEqual(await statuses(store), { a: "done" });
});

Deno.test("a run that cannot be finished or released is resumed by its engine", async () => {
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
  deepStrictEqual(events.map(({ type }) => type), [
    "taken",
    "put_off",
    "trouble",
    "taken",
    "ended",
  ]);
  deepStrictEqual(await statuses(store), { a: "done" });
  deepStrictEqual(store.rows("a"), []); // It took nothing over: the run was its own.
});
