import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { FencedError, NoProgressError } from "../../engine/mod.ts";
import { type FakeIO, fakeLauncher, type FakeScript } from "../../testing/mod.ts";
import { type HubDoor, Workers, type WorkersEvent, type WorkersOptions } from "../../workers/mod.ts";
import { Events, gate, groupSpec, withHome } from "./fixtures.ts";

type Engine = { workers: Workers; events: Events<WorkersEvent> };
type Bench = {
  /** The n-th engine of the run. It has the run until the next one is started. */
  engine: (options?: Partial<WorkersOptions>) => Promise<Engine>;
  agents: ReturnType<typeof fakeLauncher>["agents"];
  home: string;
};

/** Engines that follow each other over the same fake agents. An engine that was followed is as a frozen one that wakes up. */
function withEngines(script: FakeScript, body: (bench: Bench) => Promise<void>): Promise<void> {
  return withHome(async (home) => {
    const { launcher, agents } = fakeLauncher(script);
    const engines: Workers[] = [];
    let owner = 0;
    const engine = async (options: Partial<WorkersOptions> = {}) => {
      const epoch = ++owner;
      const events = new Events<WorkersEvent>();
      const owns = () => Promise.resolve(owner === epoch);
      const base = { run: "run", epoch, attempt: epoch, home, launcher, onEvent: events.push, owns };
      const workers = await Workers.start({ ...base, ...options });
      engines.push(workers);
      return { workers, events };
    };
    try {
      await body({ engine, agents, home });
    } finally {
      for (const workers of engines.toReversed()) await workers.stop();
    }
  });
}

const never = () => new Promise<void>(() => {});
/** As a stage that starts again: its second attempt, while the first has no recorded end. */
const AGAIN = { key: "k", attempt: 2, since_attempt: 1 };
const FIRST = { key: "k", attempt: 1, recorded: never };

/** An operation that counts its runs and ends when the test says so. */
function counted() {
  const started = gate();
  const finish = gate();
  const runs = { count: 0 };
  const train = async (_: unknown, io: FakeIO) => {
    runs.count += 1;
    started.open();
    await finish.opened;
    io.blob(new Uint8Array([7]));
    return runs.count;
  };
  return { script: { operations: { trainer: { train, score: () => "scored" } } }, started, finish, runs };
}

Deno.test("adoption: a running operation is gone on with, and its result comes to the engine that asks again", async () => {
  const { script, started, finish, runs } = counted();
  await withEngines(script, async ({ engine, agents }) => {
    const first = await engine();
    const lost = rejects(first.workers.group(groupSpec()).call("train", { x: 1 }, FIRST), FencedError);
    await started.opened;
    const { workers, events } = await engine();
    const group = workers.group(groupSpec());
    strictEqual(await group.holds("train", { x: 1 }, AGAIN), true);
    const call = group.call("train", { x: 1 }, AGAIN);
    finish.open();
    deepStrictEqual(await call, { outputs: [1], blobs: [new Uint8Array([7])], generation: 1 });
    deepStrictEqual([runs.count, agents.length], [1, 1]);
    ok(events.all.some((event) => event.type === "agent" && event.state === "adopted"));
    await first.workers.stop();
    await lost;
    strictEqual(agents[0]!.alive, true);
  });
});

Deno.test("adoption: an answer that no row was made of is delivered again, and released once there is one", async () => {
  const { script, finish, runs } = counted();
  finish.open();
  await withEngines(script, async ({ engine, agents }) => {
    await (await engine()).workers.group(groupSpec()).call("train", null, FIRST);
    const recorded = gate();
    const second = await engine();
    const again = { ...AGAIN, recorded: () => recorded.opened };
    strictEqual((await second.workers.group(groupSpec()).call("train", null, again)).outputs[0], 1);
    const released = () => agents[0]!.received.filter(({ type }) => type === "release").length;
    strictEqual(released(), 0);
    recorded.open();
    await second.workers.group(groupSpec({ group: "other" })).call("score", null, FIRST); // Comes after the release.
    deepStrictEqual([released(), runs.count], [1, 1]);
  });
});

Deno.test("adoption: other arguments, another key or an attempt that has ended is other work, and waits for the ranks", async () => {
  const { script, started, finish, runs } = counted();
  await withEngines(script, async ({ engine }) => {
    const first = await engine();
    rejects(first.workers.group(groupSpec()).call("train", { x: 1 }, FIRST), FencedError);
    await started.opened;
    const { workers } = await engine();
    const group = workers.group(groupSpec());
    const ended = { key: "k", attempt: 2, since_attempt: 2 };
    strictEqual(group.holds("train", { x: 2 }, AGAIN) || group.holds("train", { x: 1 }, { ...AGAIN, key: "j" }), false);
    strictEqual(group.holds("train", { x: 1 }, ended), false);
    const call = group.call("train", { x: 2 }, AGAIN);
    finish.open();
    deepStrictEqual([(await call).outputs, runs.count], [[2], 2]);
  });
});

Deno.test("adoption: a stage that starts again is given what its calls were answered, in their order", async () => {
  let load = 0;
  const train = () => (load === 0 ? { not_resident: null } : "trained");
  const script = { operations: { trainer: { train, load: () => (load += 1) } } };
  await withEngines(script, async ({ engine, agents }) => {
    const calls = async ({ workers }: Engine, options: typeof FIRST) => {
      const group = workers.group(groupSpec());
      const outputs: unknown[] = [];
      for (const op of ["train", "load", "train"]) outputs.push((await group.call(op, null, options)).outputs[0]);
      return outputs;
    };
    const wanted = [{ not_resident: null }, 1, "trained"];
    deepStrictEqual(await calls(await engine(), FIRST), wanted);
    deepStrictEqual(await calls(await engine(), { ...AGAIN, recorded: never }), wanted);
    strictEqual(load, 1);
    strictEqual(agents[0]!.received.filter(({ type }) => type === "task").length, 3);
  });
});

Deno.test("adoption: a group of another specification is replaced by its next generation", async () => {
  const { script, finish } = counted();
  finish.open();
  await withEngines(script, async ({ engine, agents }) => {
    await (await engine()).workers.group(groupSpec()).call("train", null, FIRST);
    const group = (await engine()).workers.group(groupSpec({ spec: { dtype: "other" } }));
    deepStrictEqual((await group.call("train", null, AGAIN)).generation, 2);
    strictEqual(agents.length, 1);
  });
});

Deno.test("adoption: what a recorded stage left behind is released, and nobody is given it", async () => {
  const { script, finish, runs } = counted();
  finish.open();
  await withEngines(script, async ({ engine, agents }) => {
    await (await engine()).workers.group(groupSpec()).call("train", null, FIRST);
    const { workers } = await engine({ isRecorded: (key) => Promise.resolve(key === "k") });
    await workers.group(groupSpec()).call("train", null, AGAIN);
    deepStrictEqual([runs.count, agents[0]!.received.some(({ type }) => type === "release")], [2, true]);
  });
});

Deno.test("adoption: left work that nobody asks for and that does not move is ended by the group's own limit", async () => {
  const { script, started } = counted();
  await withEngines(script, async ({ engine }) => {
    const first = await engine();
    rejects(first.workers.group(groupSpec()).call("train", null, FIRST), FencedError);
    await started.opened;
    const { workers, events } = await engine();
    const group = workers.group(groupSpec({ no_progress_ms: 50 }));
    deepStrictEqual((await group.call("score", null, { key: "other", attempt: 1 })).generation, 2);
    const replaced = await events.until(({ type }) => type === "replaced");
    ok(replaced.type === "replaced" && replaced.error instanceof NoProgressError);
  });
});

Deno.test("adoption: a left group that is not wanted is ended with what it runs; one of its name begins as the next generation", async () => {
  const { script, started, runs } = counted();
  await withEngines(script, async ({ engine, agents }) => {
    const first = await engine();
    rejects(first.workers.group(groupSpec({ group: "trainer_redo" })).call("train", null, FIRST), FencedError);
    await started.opened;
    const { workers } = await engine();
    workers.dismissLeft("trainer_redo");
    workers.dismissLeft("critic_redo"); // Nobody left one.
    const other = workers.group(groupSpec());
    await other.call("score", null, { ...FIRST, key: "other" }); // Comes after it.
    const stopped = agents[0]!.received.filter(({ type }) => type === "stop_group");
    deepStrictEqual(stopped.map((message) => (message as { group: string }).group), ["trainer_redo"]);
    deepStrictEqual([other.generation, runs.count], [1, 1]);
    const again = workers.group(groupSpec({ group: "trainer_redo" }));
    strictEqual(again.holds("train", null, AGAIN), false);
    await again.ready();
    strictEqual(again.generation, 2);
  });
});

Deno.test("adoption: an agent that does not come in time is ended, and another is started", async () => {
  const { script, finish } = counted();
  finish.open();
  await withEngines(script, async ({ engine, agents }) => {
    await (await engine()).workers.group(groupSpec()).call("train", null, FIRST);
    agents[0]!.follow = () => {}; // It hangs.
    const { workers } = await engine({ adoptMs: 10 });
    deepStrictEqual((await workers.group(groupSpec()).call("train", null, AGAIN)).generation, 1);
    deepStrictEqual(agents.map(({ alive }) => alive), [false, true]);
  });
});

Deno.test("adoption: an engine that was superseded starts, ends and writes nothing", async () => {
  const { script, started } = counted();
  await withEngines(script, async ({ engine, agents, home }) => {
    const first = await engine();
    const group = first.workers.group(groupSpec());
    const call = rejects(group.call("train", null, FIRST), FencedError);
    await started.opened;
    const second = await engine();
    await second.workers.group(groupSpec()).ready();
    const hub = () => Deno.readTextFile(`${home}/runs/run/hub.json`);
    const heard = () => agents[0]!.received.filter(({ epoch }) => epoch === 1).length;
    const before = [await hub(), heard()];
    await first.workers.stop();
    await call;
    await rejects(first.workers.group(groupSpec({ group: "late" })).ready(), FencedError);
    deepStrictEqual([await hub(), heard()], before);
    deepStrictEqual([agents.length, agents[0]!.alive], [1, true]);
    ok(first.events.all.some(({ type }) => type === "fenced"));
  });
});

Deno.test("adoption: where the hub cannot be announced that is told, and an adoption that fails later troubles nobody", async () => {
  await withEngines({ operations: {} }, async ({ engine, agents }) => {
    await engine();
    const door: HubDoor = {
      open: () => Promise.resolve("ws://127.0.0.1:1/agent"),
      announce: () => Promise.reject(new Error("No space left on device")),
      announced: () => null,
      withdraw: () => Promise.resolve(),
      terminate: () => {},
      close: () => Promise.resolve(),
    };
    const asked = gate();
    let asks = 0;
    const owns = () => {
      asks += 1;
      if (asks === 2) asked.open();
      return Promise.resolve(asks === 1);
    };
    await rejects(engine({ door, owns }), /No space left on device/);
    agents[0]!.exit();
    await asked.opened; // The adoption fails: unhandled, it would end the whole test run.
  });
});

Deno.test("adoption: an engine that cannot learn whether it owns the run leaves its workers to their grace", async () => {
  const { script, finish } = counted();
  finish.open();
  await withEngines(script, async ({ engine, agents }) => {
    let there = true;
    const owns = () => there ? Promise.resolve(true) : Promise.reject(new Error("no route to the store"));
    const { workers } = await engine({ owns, ownsRetryMs: 1 });
    await workers.group(groupSpec()).call("train", null, FIRST);
    there = false;
    await workers.stop();
    strictEqual(agents[0]!.alive, true);
    agents[0]!.exit();
  });
});
