import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import {
  FencedError,
  InfrastructureError,
  ManualClock,
  WorkerLostError,
} from "../../engine/mod.ts";
import { fakeLauncher } from "../../testing/mod.ts";
import { type Launcher, readWorkerStates, Workers } from "../../workers/mod.ts";
import { gate, groupSpec, withFakes, withHome } from "./fixtures.ts";

const KEY = { key: "k", attempt: 1 };

Deno.test("Workers: a dropped socket re-attaches and the result arrives once", () => {
  const started = gate();
  const finish = gate();
  let runs = 0;
  const train = async () => {
    runs += 1;
    started.open();
    await finish.opened;
    return "done";
  };
  return withFakes({ operations: { trainer: { train } } }, async ({ workers, agents }) => {
    const call = workers.group(groupSpec()).call("train", null, KEY);
    await started.opened;
    agents[0]!.dropSocket();
    finish.open(); // Its result has no line to go by until the agent is back.
    await agents[0]!.connect();
    deepStrictEqual([await call, runs], [{ outputs: ["done"], blobs: [], generation: 1 }, 1]);
  });
});

Deno.test("Workers: blobs of a result that was cut off arrive whole after the reconnect", () => {
  const started = gate();
  const finish = gate();
  const script = {
    operations: {
      trainer: {
        train: async (_args: unknown, io: { blob(data: Uint8Array): number }) => {
          started.open();
          await finish.opened;
          io.blob(new Uint8Array(3_000_000).fill(9));
        },
      },
    },
  };
  return withFakes(script, async ({ workers, agents }) => {
    const call = workers.group(groupSpec()).call("train", null, KEY);
    await started.opened;
    agents[0]!.dropSocket();
    finish.open();
    await agents[0]!.connect();
    const { blobs } = await call;
    deepStrictEqual([blobs.length, blobs[0]!.length, blobs[0]!.every((byte) => byte === 9)], [
      1,
      3_000_000,
      true,
    ]);
  });
});

Deno.test("Workers replaces an agent that ended, and its groups with it", () => {
  const started = gate();
  const script = {
    operations: {
      trainer: { train: () => (started.open(), new Promise(() => {})), score: () => "fine" },
    },
  };
  return withFakes(script, async ({ workers, agents, events }) => {
    const group = workers.group(groupSpec());
    const call = group.call("train", null, KEY);
    await started.opened;
    agents[0]!.exit("the agent was killed by SIGKILL");
    await rejects(
      call,
      (error: Error) => error instanceof WorkerLostError && /killed by SIGKILL/.test(error.message),
    );
    deepStrictEqual((await group.call("score", null, KEY)).generation, 2);
    deepStrictEqual(agents.map(({ agentId }) => agentId), ["local-1", "local-2"]);
    ok(events.all.some((event) => event.type === "agent" && event.state === "lost"));
  });
});

Deno.test("Workers replaces an agent that is silent for 5 s, and for a moment more", () => {
  const clock = new ManualClock();
  return withFakes(
    { operations: { trainer: { score: () => "fine" } } },
    async ({ workers, agents, events }) => {
      const group = workers.group(groupSpec());
      await group.ready();
      const lost = events.until((event) => event.type === "agent" && event.state === "lost");
      await clock.advance(4999);
      strictEqual(agents.length, 1);
      await clock.advance(251);
      const event = await lost;
      ok(event.type === "agent" && /silent for 5250 ms/.test(event.reason ?? ""));
      strictEqual((await group.call("score", null, KEY)).generation, 2);
    },
    { clock },
  );
});

Deno.test("Workers gives up when the agent is lost four times without a completed operation", () =>
  withHome(async (home) => {
    const launcher = {
      start: () =>
        Promise.resolve({
          pid: 1,
          exited: Promise.resolve("the agent ended with exit code 2"),
          destroy: () => Promise.resolve(),
        }),
    };
    const workers = await Workers.start({ run: "r", epoch: 1, attempt: 1, home, launcher });
    const failed = (error: Error) =>
      error instanceof WorkerLostError && !error.retryable && /exit code 2/.test(error.message);
    await rejects(workers.group(groupSpec()).call("train", null, KEY), failed);
    await rejects(workers.group(groupSpec({ group: "late" })).ready(), failed);
    await workers.stop();
  }));

Deno.test("Workers: `fenced` fails every call, and the agent is not shut down", () => {
  const started = gate();
  return withFakes(
    { operations: { trainer: { train: () => (started.open(), new Promise(() => {})) } } },
    async (bench) => {
      const group = bench.workers.group(groupSpec());
      const call = group.call("train", null, KEY);
      await started.opened;
      bench.agents[0]!.sendRaw(JSON.stringify({ type: "fenced", epoch: 9 }));
      await rejects(
        call,
        (error: Error) =>
          error instanceof FencedError && /epoch 9 owns it: this engine has 1/.test(error.message),
      );
      await rejects(group.call("train", null, KEY), FencedError);
      await bench.workers.stop();
      strictEqual(
        bench.agents[0]!.received.some(({ type }) => type === "shutdown"),
        false,
      );
      ok((await Deno.stat(`${bench.home}/runs/run/hub.json`)).isFile); // The new owner's by now.
      deepStrictEqual(bench.events.all.filter(({ type }) => type === "fenced"), [{
        type: "fenced",
        epoch: 9,
      }]);
    },
  );
});

Deno.test("Workers.stop() asks the agent to end, fails what runs, and replaces nothing", () => {
  const started = gate();
  return withFakes(
    { operations: { trainer: { train: () => (started.open(), new Promise(() => {})) } } },
    async (bench) => {
      const group = bench.workers.group(groupSpec());
      const call = rejects(group.call("train", null, KEY), /the workers were stopped/);
      await started.opened;
      await bench.workers.stop();
      await call;
      strictEqual(bench.agents[0]!.received.at(-1)!.type, "shutdown");
      deepStrictEqual([group.state, bench.agents.length], ["stopped", 1]);
      strictEqual(bench.events.all.some(({ type }) => type === "replaced"), false);
    },
  );
});

Deno.test("Workers refuses two groups of one name", () =>
  withFakes({ operations: {} }, async ({ workers }) => {
    await workers.group(groupSpec()).ready();
    await rejects(async () => await workers.group(groupSpec()).ready(), InfrastructureError);
  }));

Deno.test("Workers.states() shows every rank, and readWorkerStates() the same from outside", () =>
  withFakes({ operations: {} }, async ({ workers, home }) => {
    await workers.group(groupSpec({ ranks: 2 })).ready();
    await workers.group(groupSpec({ group: "sampler/0", role: "sampler" })).ready();
    const rank = (group: string, role: string, number: number) => ({
      role,
      group,
      generation: 1,
      rank: number,
      pid: 1,
      state: "ready",
    });
    const wanted = [
      rank("trainer", "trainer", 0),
      rank("trainer", "trainer", 1),
      rank("sampler/0", "sampler", 0),
    ];
    deepStrictEqual(workers.states(), wanted);
    await workers.stop();
    deepStrictEqual((await readWorkerStates(home, "run")).map(({ state }) => state), [
      "stopped",
      "stopped",
      "stopped",
    ]);
    deepStrictEqual(await readWorkerStates(home, "another"), []);
  }));

Deno.test("Workers: an agent that breaks the protocol three times is replaced", () =>
  withFakes(
    { operations: { trainer: { score: () => "fine" } } },
    async ({ workers, agents, events }) => {
      const group = workers.group(groupSpec());
      await group.ready();
      for (let i = 0; i < 3; i++) {
        agents[0]!.sendRaw("nonsense");
        await agents[0]!.closed;
        if (i < 2) await agents[0]!.connect();
      }
      const lost = await events.until((event) => event.type === "agent" && event.state === "lost");
      ok(lost.type === "agent" && /broke the protocol/.test(lost.reason ?? ""));
      strictEqual((await group.call("score", null, KEY)).generation, 2);
    },
  ));

Deno.test("Workers.stop() keeps an agent that another engine has taken over", () =>
  withHome(async (home) => {
    const clock = new ManualClock();
    const { launcher, agents } = fakeLauncher({ operations: { trainer: {} } });
    let [owned, destroyed] = [true, false];
    // The agent hangs: it does not end although it is told to.
    const start: Launcher["start"] = async (agent) => ({
      ...await launcher.start(agent),
      exited: new Promise(() => {}),
      destroy: () => Promise.resolve(void (destroyed = true)),
    });
    const owns = () => Promise.resolve(owned);
    const workers = await Workers.start({
      run: "run",
      epoch: 1,
      attempt: 1,
      home,
      launcher: { start },
      owns,
      clock,
    });
    const group = workers.group(groupSpec());
    await group.ready();
    const stopping = workers.stop();
    await agents[0]!.exited;
    owned = false;
    await clock.advance(10_000);
    await stopping;
    strictEqual(destroyed, false);
  }));

Deno.test("Workers.start() continues if the store cannot say which answers are recorded", () =>
  withHome(async (home) => {
    const { launcher } = fakeLauncher({
      operations: { trainer: { double: (n) => (n as number) * 2 } },
    });
    const options = { run: "run", attempt: 1, home, launcher };
    const first = await Workers.start({ ...options, epoch: 1 });
    const recorded = () => new Promise<void>(() => {});
    await first.group(groupSpec()).call("double", 4, { key: "k", attempt: 1, recorded });
    const isRecorded = () => Promise.reject(new InfrastructureError("the store does not answer"));
    const second = await Workers.start({ ...options, epoch: 2, isRecorded });
    deepStrictEqual(
      (await second.group(groupSpec()).call("double", 5, { key: "l", attempt: 1 })).outputs,
      [10],
    );
    await second.stop();
    await first.stop();
  }));

Deno.test("Workers saves what a reclaimed host holds, which costs no budget", () => {
  const saved = gate();
  let asks = 0;
  const onLeaving = () => (asks += 1, saved.opened);
  const script = { operations: { trainer: { score: () => "fine" } } };
  return withFakes(script, async ({ workers, agents, events }) => {
    const group = workers.group(groupSpec());
    await group.ready();
    agents[0]!.sendRaw(JSON.stringify({ type: "leaving", grace_ms: 60_000 }));
    agents[0]!.sendRaw(JSON.stringify({ type: "leaving", grace_ms: 60_000 }));
    await events.until((event) => event.type === "agent" && event.state === "leaving");
    strictEqual((await group.call("score", null, { key: "k", attempt: 1 })).generation, 1);
    saved.open();
    const replaced = await events.until((event) => event.type === "replaced");
    ok(
      replaced.type === "replaced" && !replaced.error.counted &&
        /reclaimed/.test(replaced.error.message),
    );
    deepStrictEqual(
      [(await group.call("score", null, { key: "k", attempt: 2 })).generation, asks],
      [2, 1],
    );
  }, { onLeaving });
});
