import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import {
  CancelledError,
  InfrastructureError,
  ManualClock,
  NoProgressError,
  TimeoutError_,
  UserCodeError,
  WorkerLostError,
} from "../../../engine/mod.ts";
import { failureReport, FakeFailure, type FakeScript } from "../../../testing/mod.ts";
import type { GroupSpec, Progress } from "../../../workers/mod.ts";
import { gate, groupSpec, withFakes } from "../fixtures.ts";

const KEY = { key: "round/1/train", attempt: 1 };
const trainer = (
  operations: FakeScript["operations"][string],
  more: Partial<FakeScript> = {},
): FakeScript => ({
  operations: { trainer: operations },
  ...more,
});

Deno.test("WorkerGroup.call() gives every rank's output, rank 0's blobs and the generation", () => {
  const script = trainer({
    train: (args, io) => {
      io.blob(new Uint8Array(5_000_000).fill(7)); // Two frames.
      io.blob(new Uint8Array());
      return { args, key: io.key, attempt: io.attempt };
    },
  });
  return withFakes(script, async ({ workers }) => {
    const group = workers.group(groupSpec({ ranks: 2 }));
    const { outputs, blobs, generation } = await group.call("train", { x: 1 }, KEY);
    const output = { args: { x: 1 }, ...KEY };
    deepStrictEqual([outputs, generation], [[output, output], 1]);
    deepStrictEqual(blobs.map((blob) => blob.length), [5_000_000, 0]);
    strictEqual(blobs[0]!.every((byte) => byte === 7), true);
  });
});

Deno.test("WorkerGroup.ready() tells what rank 0 says of itself", () =>
  withFakes(trainer({}, { info: { trainer: { device: "cpu" } } }), async ({ workers }) => {
    deepStrictEqual(await workers.group(groupSpec()).ready(), {
      generation: 1,
      info: { device: "cpu" },
    });
  }));

Deno.test("WorkerGroup runs one operation at a time, in the order of the calls", () => {
  const order: string[] = [];
  let inside = 0;
  const script = trainer({
    train: async (args) => {
      inside += 1;
      strictEqual(inside, 1);
      await new Promise((resolve) => setTimeout(resolve, 1));
      order.push(String(args));
      inside -= 1;
    },
  });
  return withFakes(script, async ({ workers }) => {
    const group = workers.group(groupSpec());
    await Promise.all(["a", "b", "c", "d"].map((name) => group.call("train", name, KEY)));
    deepStrictEqual(order, ["a", "b", "c", "d"]);
  });
});

Deno.test("WorkerGroup refuses the 65th waiting call", () => {
  const { opened, open } = gate();
  return withFakes(trainer({ train: () => opened }), async ({ workers }) => {
    const group = workers.group(groupSpec());
    const calls = Array.from({ length: 64 }, () => group.call("train", null, KEY));
    await rejects(group.call("train", null, KEY), /64 calls wait: the limit is 64/);
    open();
    await Promise.all(calls);
  });
});

Deno.test("WorkerGroup passes progress on", () => {
  const seen: Progress[] = [];
  const script = trainer({
    train: (_args, io) => {
      io.progress("step", 1, 2);
      io.progress("step", 2, 2);
    },
  });
  return withFakes(script, async ({ workers }) => {
    await workers.group(groupSpec()).call("train", null, {
      ...KEY,
      onProgress: (progress) => seen.push(progress),
    });
    deepStrictEqual(seen.map(({ phase, done, total }) => [phase, done, total]), [["step", 1, 2], [
      "step",
      2,
      2,
    ]]);
  });
});

Deno.test("WorkerGroup keeps its generation if a failure changed no rank", () => {
  const script = trainer({
    train: () => {
      throw new FakeFailure({ cause: "user_code", exception: "KeyError", message: "'answer'" });
    },
    score: () => "fine",
  });
  return withFakes(script, async ({ workers }) => {
    const group = workers.group(groupSpec());
    await rejects(
      group.call("train", null, KEY),
      (error: Error) => error instanceof UserCodeError && /KeyError/.test(error.message),
    );
    deepStrictEqual((await group.call("score", null, KEY)).generation, 1);
  });
});

Deno.test("WorkerGroup is replaced whole when a rank dies", () => {
  const started = gate();
  const script = trainer({
    train: (_args, io) => {
      started.open();
      return new Promise((_resolve, reject) =>
        io.signal.addEventListener("abort", () => reject(io.signal.reason))
      );
    },
    score: () => "fine",
  });
  return withFakes(script, async ({ workers, agents, events }) => {
    const group = workers.group(groupSpec({ ranks: 2 }));
    const call = group.call("train", null, KEY);
    const next = group.call("score", null, KEY);
    await started.opened;
    agents[0]!.failGroup("trainer", [{
      rank: 1,
      cause: "signal",
      signal: "SIGKILL",
      message: "killed by SIGKILL",
    }]);
    await rejects(
      call,
      (error: Error) =>
        error instanceof WorkerLostError && error.retryable && /rank 1 failed/.test(error.message),
    );
    strictEqual((await next).generation, 2);
    const replaced = events.all.find((event) => event.type === "replaced");
    ok(replaced?.type === "replaced");
    deepStrictEqual([replaced.generation, replaced.replacements], [2, 1]);
  });
});

Deno.test("WorkerGroup fails permanently with the root cause after three replacements", () => {
  const failStart =
    () => [failureReport({ cause: "exit", exit_code: 7, message: "ended with exit code 7" })];
  return withFakes(trainer({}, { failStart }), async ({ workers, agents }) => {
    const group = workers.group(groupSpec());
    const isRoot = (error: Error) =>
      error instanceof WorkerLostError && !error.retryable &&
      /^Cannot start trainer .* exit code 7/.test(error.message) &&
      /replaced 3 times without committed progress/.test(error.message);
    await rejects(group.call("train", null, KEY), isRoot);
    await rejects(group.call("train", null, KEY), isRoot);
    await rejects(group.ready(), isRoot);
    strictEqual(agents[0]!.received.filter(({ type }) => type === "start_group").length, 4);
    deepStrictEqual([group.state, group.generation], ["failed", 4]);
  });
});

Deno.test("WorkerGroup gets its whole budget back with every completed operation", () => {
  const script = trainer({
    train: () => {
      throw new FakeFailure({ cause: "out_of_memory" });
    },
    score: () => "fine",
  });
  return withFakes(script, async ({ workers }) => {
    const group = workers.group(groupSpec());
    for (let i = 0; i < 3; i++) {
      for (let j = 0; j < 3; j++) await rejects(group.call("train", null, KEY));
      await group.call("score", null, KEY);
    }
    strictEqual(group.generation, 10);
  });
});

Deno.test("WorkerGroup counts a failure of both the task and the group once", () => {
  const owned = gate();
  let isAsked = false;
  const report = { cause: "exit" as const, exit_code: 7, message: "ended with exit code 7" };
  const script = trainer({
    train: () => {
      isAsked = true;
      throw new FakeFailure(report);
    },
    score: () => "fine",
  });
  const owns = () => isAsked ? owned.opened.then(() => true) : Promise.resolve(true);
  return withFakes(script, async ({ workers, agents, events }) => {
    const group = workers.group(groupSpec());
    await rejects(group.call("train", null, KEY), /exit code 7/);
    agents[0]!.failGroup("trainer", [report]);
    agents[0]!.sendRaw(
      JSON.stringify({ type: "log", group: "trainer", rank: 0, line: "after it" }),
    );
    await events.until((event) => event.type === "log");
    owned.open();
    strictEqual((await group.call("score", null, KEY)).generation, 2);
    strictEqual(events.all.filter(({ type }) => type === "replaced").length, 1);
  }, { owns });
});

Deno.test("WorkerGroup: work that is lost before it was recorded gives no budget back", () => {
  const script = trainer({
    load: () => "fine",
    train: () => {
      throw new FakeFailure({ exception: "ValueError", message: "no" });
    },
  });
  return withFakes(script, async ({ workers }) => {
    const group = workers.group(groupSpec());
    const attempt = async () => {
      const recorded = gate();
      const options = { ...KEY, recorded: () => recorded.opened };
      await group.call("load", null, options);
      await rejects(group.call("train", null, options), /ValueError/);
      recorded.open(); // The end of the attempt: it failed.
    };
    await attempt();
    await attempt();
    await rejects(
      group.ready(),
      /no\n {2}next.*\n {2}trainer was replaced 1 times without committed progress/,
    );
  });
});

Deno.test("WorkerGroup confirms a crash once, then ends with the evidence", () => {
  const failStart =
    () => [failureReport({ cause: "signal", signal: "SIGSEGV", message: "killed by SIGSEGV" })];
  return withFakes(trainer({}, { failStart }), async ({ workers, agents }) => {
    const group = workers.group(groupSpec());
    await rejects(
      group.ready(),
      (error: Error) => error instanceof WorkerLostError && !error.retryable,
    );
    strictEqual(agents[0]!.received.filter(({ type }) => type === "start_group").length, 2);
  });
});

Deno.test("WorkerGroup continues without a broken device, and ends if none is left", () => {
  const message = "CUDA error: uncorrectable ECC error encountered";
  const failStart = () => [failureReport({ exception: "AcceleratorError", message })];
  const seen: string[] = [];
  const on = (gpu: number): GroupSpec => ({
    ...groupSpec({ env: { CUDA_VISIBLE_DEVICES: String(gpu) } }),
    without: ({ observed, action }) => {
      seen.push(`${gpu} ${observed} ${action}`);
      if (gpu === 2) throw new InfrastructureError("no GPU is left", {}, { retryable: false });
      return on(gpu + 1);
    },
  });
  return withFakes(trainer({}, { failStart }), async ({ workers, agents }) => {
    await rejects(workers.group(on(1)).ready(), /no GPU is left/);
    const starts = agents[0]!.received.filter((one) => one.type === "start_group");
    deepStrictEqual(starts.map(({ env }) => env.CUDA_VISIBLE_DEVICES), ["1", "2"]);
    deepStrictEqual(seen, ["1 cuda_ecc exclude_device", "2 cuda_ecc exclude_device"]);
  });
});

Deno.test("WorkerGroup does not start again after a failed import", () => {
  const failStart =
    () => [failureReport({ cause: "import_error", message: "No module named 'torch'" })];
  return withFakes(trainer({}, { failStart }), async ({ workers, agents }) => {
    await rejects(workers.group(groupSpec()).ready(), /No module named 'torch'/);
    strictEqual(agents[0]!.received.filter(({ type }) => type === "start_group").length, 1);
  });
});

Deno.test("WorkerGroup.call() rejects when aborted; the next call waits for the ranks", () => {
  const started = gate();
  const order: string[] = [];
  const script = trainer({
    train: (_args, io) => {
      started.open();
      return new Promise((resolve) =>
        io.signal.addEventListener("abort", () => resolve(order.push("let go")))
      );
    },
    score: () => order.push("next"),
  });
  return withFakes(script, async ({ workers }) => {
    const group = workers.group(groupSpec());
    const stop = new AbortController();
    const call = group.call("train", null, { ...KEY, signal: stop.signal });
    const next = group.call("score", null, KEY);
    await started.opened;
    stop.abort(new CancelledError("enough"));
    await rejects(call, /enough/);
    deepStrictEqual([(await next).generation, order], [1, ["let go", "next"]]);
  });
});

Deno.test("WorkerGroup.call() that was aborted while it waited never reaches the ranks", () => {
  const { opened, open } = gate();
  const ran: unknown[] = [];
  const script = trainer({ train: (args) => (ran.push(args), opened) });
  return withFakes(script, async ({ workers }) => {
    const group = workers.group(groupSpec());
    const stop = new AbortController();
    const first = group.call("train", 1, KEY);
    const second = group.call("train", 2, { ...KEY, signal: stop.signal });
    const third = group.call("train", 3, KEY);
    stop.abort(new CancelledError("enough"));
    await rejects(second, /enough/);
    open();
    await Promise.all([first, third]);
    deepStrictEqual(ran, [1, 3]);
  });
});

Deno.test("WorkerGroup is replaced when ranks hold on to a cancelled operation for 8 s", () => {
  const clock = new ManualClock();
  const started = gate();
  const script = trainer({
    train: () => (started.open(), new Promise(() => {})),
    score: () => "fine",
  });
  return withFakes(script, async ({ workers, agents }) => {
    const group = workers.group(groupSpec());
    const stop = new AbortController();
    const call = group.call("train", null, { ...KEY, signal: stop.signal });
    await started.opened;
    stop.abort(new CancelledError("enough"));
    await rejects(call, /enough/);
    const beats = setInterval(() => agents[0]!.heartbeat(), 1); // Alive, but the rank is stuck.
    await clock.advance(8_000);
    clearInterval(beats);
    strictEqual((await group.call("score", null, KEY)).generation, 2);
  }, { clock, silent_ms: 60_000 });
});

Deno.test("WorkerGroup.call() past timeout_ms fails as a timeout and replaces the group", () => {
  const clock = new ManualClock();
  const started = gate();
  const script = trainer({
    train: () => (started.open(), new Promise(() => {})),
    score: () => "fine",
  });
  return withFakes(script, async ({ workers }) => {
    const group = workers.group(groupSpec());
    const call = group.call("train", null, { ...KEY, timeout_ms: 3000 });
    const failed = rejects(
      call,
      (error: Error) => error instanceof TimeoutError_ && /3000 ms/.test(error.message),
    );
    await started.opened;
    await clock.advance(3000);
    await failed;
    strictEqual((await group.call("score", null, KEY)).generation, 2);
  }, { clock });
});

Deno.test("WorkerGroup.call() fails as no_progress, and progress moves the limit", () => {
  const clock = new ManualClock();
  let progress = (_done: number) => {};
  const started = gate();
  const script = trainer({
    train: (_args, io) => {
      progress = (done) => io.progress("step", done);
      started.open();
      return new Promise(() => {});
    },
  });
  return withFakes(script, async ({ workers }) => {
    const heard = gate();
    const group = workers.group(groupSpec());
    const call = group.call("train", null, {
      ...KEY,
      no_progress_ms: 1000,
      onProgress: heard.open,
    });
    let over = false;
    const failed = rejects(call, NoProgressError).then(() => over = true);
    await started.opened;
    await clock.advance(900);
    progress(1);
    await heard.opened;
    await clock.advance(900);
    strictEqual(over, false);
    await clock.advance(100);
    await failed;
    strictEqual(group.generation, 2);
  }, { clock });
});

Deno.test("WorkerGroup.call() past its group's time limit replaces the group, although it progresses", () => {
  const clock = new ManualClock();
  let progress = (_done: number) => {};
  const started = gate();
  const script = trainer({
    train: (_args, io) => {
      progress = (done) => io.progress("step", done);
      started.open();
      return new Promise(() => {});
    },
    score: () => "fine",
  });
  return withFakes(script, async ({ workers }) => {
    const heard = gate();
    const timeouts = { train: { limit_ms: 3000, setting: "workers.train_timeout_s" } };
    const group = workers.group({ ...groupSpec(), no_progress_ms: 2000, timeouts });
    const call = group.call("train", null, { ...KEY, onProgress: heard.open });
    const failed = rejects(
      call,
      (error: Error) =>
        error instanceof TimeoutError_ &&
        /3000 ms .*workers\.train_timeout_s allows no more/.test(error.message),
    );
    await started.opened;
    await clock.advance(1500);
    progress(1);
    await heard.opened;
    await clock.advance(1500);
    await failed;
    strictEqual((await group.call("score", null, KEY)).generation, 2);
  }, { clock });
});

Deno.test("WorkerGroup.call(): a caller's timeout_ms goes before its group's time limit", () => {
  const clock = new ManualClock();
  const started = gate();
  const script = trainer({ train: () => (started.open(), new Promise(() => {})) });
  return withFakes(script, async ({ workers }) => {
    const timeouts = { train: { limit_ms: 1000, setting: "workers.train_timeout_s" } };
    const group = workers.group({ ...groupSpec(), timeouts });
    let over = false;
    const failed = rejects(
      group.call("train", null, { ...KEY, timeout_ms: 3000 }),
      /3000 ms after it was started\n|3000 ms after it was started$/m,
    ).then(() => over = true);
    await started.opened;
    await clock.advance(2999);
    strictEqual(over, false);
    await clock.advance(1);
    await failed;
  }, { clock });
});
