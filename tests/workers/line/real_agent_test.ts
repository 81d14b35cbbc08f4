import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import process from "node:process";
import {
  InfrastructureError,
  NoProgressError,
  systemClock,
  WorkerLostError,
} from "../../../engine/mod.ts";
import { Workers, type WorkersEvent, type WorkersOptions } from "../../../workers/mod.ts";
import { agents, processStart } from "../../../workers/processes/process_sweep.ts";
import { Events, gate, groupSpec, withHome } from "../fixtures.ts";

/** The gate names an interpreter that has the agent's packages. */
const python = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";
const KEY = { key: "k", attempt: 1 };
const ECHO_PATH = new URL("../../python", import.meta.url).pathname;

type Bench = { workers: Workers; events: Events<WorkersEvent>; home: string };
type Pids = { pid: number; children: number[]; parent: number };

function real(
  name: string,
  body: (bench: Bench) => Promise<void>,
  options: Partial<WorkersOptions> = {},
): void {
  Deno.test({
    name: `real agent: ${name}`,
    ignore: python === "",
    fn: () =>
      withHome(async (home) => {
        const events = new Events<WorkersEvent>();
        const base = {
          run: "run",
          epoch: 1,
          attempt: 1,
          home,
          python,
          env: { PYTHONPATH: ECHO_PATH },
        };
        const workers = await Workers.start({ ...base, onEvent: events.push, ...options });
        try {
          await body({ workers, events, home });
        } finally {
          await workers.stop();
        }
      }),
  });
}

/**
 * Real processes end when they end: looks every 20 ms. Returns those still alive after `limit_ms`.
 */
async function aliveAfter(pids: number[], limit_ms: number): Promise<number[]> {
  const until = systemClock.monotonic() + limit_ms;
  while (true) {
    const alive = pids.filter((pid) => processStart(pid) !== null);
    if (alive.length === 0 || systemClock.monotonic() >= until) return alive;
    await systemClock.sleep(20);
  }
}

const pidsOf = (outputs: unknown[]) => [
  ...new Set(
    (outputs as Pids[]).flatMap(({ pid, parent, children }) => [pid, parent, ...children]),
  ),
];

real("runs an operation on every rank, with blobs over 4 MiB and progress", async ({ workers }) => {
  const group = workers.group(groupSpec({ ranks: 2, python, spec: { tag: 1 } }));
  const { outputs } = await group.call("echo", { x: [1, null] }, { key: "round/1", attempt: 2 });
  deepStrictEqual(
    outputs,
    [0, 1].map((rank) => ({ rank, args: { x: [1, null] }, key: "round/1", attempt: 2 })),
  );
  const { blobs } = await group.call("blob", { sizes: [0, 9_000_000] }, KEY);
  deepStrictEqual(blobs.map(({ length }) => length), [0, 9_000_000]);
  const seen: number[] = [];
  await group.call("progress", { steps: 3 }, { ...KEY, onProgress: ({ done }) => seen.push(done) });
  strictEqual(seen.at(-1), 3);
  const { info } = await group.ready();
  deepStrictEqual([info.device, info.echo], ["cpu", { tag: 1 }]);
  deepStrictEqual(workers.states().map(({ rank }) => rank), [0, 1]);
});

real(
  "a rank killed by SIGKILL: the root is named with its log, and a new generation starts",
  async ({ workers }) => {
    const group = workers.group(groupSpec({ ranks: 2, python }));
    await rejects(group.call("crash", { rank: 1 }, KEY), (error: Error) => {
      ok(error instanceof WorkerLostError);
      const lines = error.message.split("\n");
      ok(/^Cannot run 'crash' on trainer because rank 1 failed: .*SIGKILL/.test(lines[0]!));
      ok(
        lines.includes("  | about to crash") &&
          /log: .*\/logs\/run\/attempt_1\/trainer\.rank1\.gen1\.log$/m.test(error.message),
      );
      return true;
    });
    strictEqual((await group.call("echo", {}, KEY)).generation, 2);
  },
);

real(
  "a worker that dies on import: the cause is shown once, with no second try",
  async ({ workers, events }) => {
    const group = workers.group(groupSpec({ python, spec: { boot: "import_error" } }));
    await rejects(group.ready(), (error: Error) => {
      ok(error instanceof InfrastructureError);
      ok(
        /^Cannot start trainer because rank 0 failed: .*a_module_that_is_not_there/.test(
          error.message,
        ),
      );
      return error.message.includes("next: deno task rl doctor");
    });
    strictEqual(events.all.some(({ type }) => type === "replaced"), false);
  },
);

real(
  "a group that exits at every start is given up after three replacements, with its last words",
  async ({ workers }) => {
    const group = workers.group(groupSpec({ python, spec: { boot: "exit" } }));
    await rejects(
      group.ready(),
      (error: Error) =>
        /exit code 7/.test(error.message) && /last words before exit 7/.test(error.message) &&
        /replaced 3 times/.test(error.message),
    );
  },
);

real(
  "an agent killed by SIGKILL takes its ranks along, and a new one takes over",
  async ({ workers, events }) => {
    const group = workers.group(groupSpec({ ranks: 2, python, spec: { children: 1 } }));
    const { outputs } = await group.call("pids", {}, KEY);
    const started = await events.until((event) =>
      event.type === "agent" && event.state === "started"
    );
    ok(started.type === "agent");
    process.kill(started.pid, "SIGKILL");
    await events.until((event) => event.type === "agent" && event.state === "lost");
    deepStrictEqual(await aliveAfter(pidsOf(outputs), 0), []); // The launcher swept before it told.
    strictEqual((await group.call("echo", {}, KEY)).generation, 2);
  },
);

real(
  "an agent that hangs (SIGSTOP) is found by its silence and replaced",
  async ({ workers, events }) => {
    const group = workers.group(groupSpec({ python }));
    const { outputs } = await group.call("pids", {}, KEY);
    const started = await events.until((event) =>
      event.type === "agent" && event.state === "started"
    );
    ok(started.type === "agent");
    process.kill(started.pid, "SIGSTOP");
    const lost = await events.until((event) => event.type === "agent" && event.state === "lost");
    ok(lost.type === "agent" && /silent for/.test(lost.reason ?? ""));
    deepStrictEqual(await aliveAfter([...pidsOf(outputs), started.pid], 0), []);
    strictEqual((await group.call("echo", {}, KEY)).generation, 2);
  },
  { silent_ms: 600, heartbeat_ms: 100 },
);

real(
  "a cancelled operation rejects immediately; ranks that drop it are not replaced",
  async ({ workers }) => {
    const group = workers.group(groupSpec({ ranks: 2, python }));
    const stop = new AbortController();
    const running = gate();
    const call = group.call("sleep_until_cancelled", {}, {
      ...KEY,
      signal: stop.signal,
      onProgress: running.open,
    });
    await running.opened;
    stop.abort(new Error("enough"));
    await rejects(call, /enough/);
    strictEqual((await group.call("echo", { x: 1 }, KEY)).generation, 1);
  },
);

real(
  "hanging ranks are found by missing progress, report where they are, and are replaced",
  async ({ workers }) => {
    const group = workers.group(groupSpec({ ranks: 2, python, no_progress_ms: 500 }));
    const [, frozen] = (await group.call("pids", {}, KEY)).outputs as Pids[];
    process.kill(frozen!.pid, "SIGSTOP");
    await rejects(group.call("hang", {}, KEY), (error: Error) => {
      ok(error instanceof NoProgressError);
      ok(
        error.message.includes("stacks of its ranks: ") &&
          error.message.includes("/trainer.rank*.gen1.log"),
      );
      return true;
    });
    strictEqual((await group.call("echo", {}, KEY)).generation, 2);
    const logs = await Promise.all(
      [0, 1].map((n) => Deno.readTextFile(`${workers.logDir}/trainer.rank${n}.gen1.log`)),
    );
    ok(
      /hangs in state sleeping; stacks:[^]*Current thread[^]*echo_worker\.py", line \d+ in hang/
        .test(logs[0]!),
    );
    ok(logs[1]!.includes("hangs in state stopped"));
  },
);

real("stop() leaves no process", async ({ workers }) => {
  const group = workers.group(groupSpec({ ranks: 2, python, spec: { children: 1 } }));
  const pids = pidsOf((await group.call("pids", {}, KEY)).outputs);
  strictEqual(pids.length, 5); // Two ranks, a child each, one agent.
  await workers.stop();
  deepStrictEqual(await aliveAfter(pids, 0), []);
});

Deno.test({
  name: "real agent: a socket that drops before the result delivers it once",
  ignore: python === "",
  fn: () =>
    withHome(async (home) => {
      // Frames: hello, welcome, start_group, group, task, accepted; the seventh is the result.
      Deno.env.set("HOLDFAST_FAULT", "drop:agent@frame:7");
      const events = new Events<WorkersEvent>();
      const base = {
        run: "run",
        epoch: 1,
        attempt: 1,
        home,
        python,
        env: { PYTHONPATH: ECHO_PATH },
      };
      const workers = await Workers.start({ ...base, onEvent: events.push });
      Deno.env.delete("HOLDFAST_FAULT");
      try {
        const group = workers.group(groupSpec({ python }));
        const results = [await group.call("count", {}, KEY), await group.call("count", {}, KEY)];
        deepStrictEqual(results.map(({ outputs, generation }) => [outputs, generation]), [[[{
          count: 1,
        }], 1], [[{
          count: 2,
        }], 1]]);
        strictEqual(
          events.all.filter((event) => event.type === "agent" && event.state === "attached").length,
          2,
        );
        ok((await Deno.stat(`${home}/runs/run/faults/drop:agent@frame:7`)).isFile);
      } finally {
        await workers.stop();
      }
    }),
});

type Abandoned = {
  engine: Deno.ChildProcess;
  pids: number[];
  file: string;
  nextLine: () => Promise<string>;
};

/** An engine that runs an operation which ends once `file` is there. */
async function abandoned(home: string, { grace_ms }: { grace_ms: number }): Promise<Abandoned> {
  const script = new URL("../fleet/abandoned_engine.ts", import.meta.url).pathname;
  const file = `${home}/go`;
  const args = ["run", "-A", "--quiet", "--no-check", script, home, python, file, String(grace_ms)];
  const engine = new Deno.Command(Deno.execPath(), { args, stdin: "null", stdout: "piped" })
    .spawn();
  const reader = engine.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const nextLine = async () => (await reader.read()).value?.trim() ?? "";
  return { engine, pids: JSON.parse(await nextLine()), file, nextLine };
}

const SECOND = { run: "run", epoch: 2, attempt: 2, python, env: { PYTHONPATH: ECHO_PATH } };
const SAME = { ranks: 2, python, spec: { children: 1 } };

/**
 * The second engine's calls, as a stage that starts again makes them. The ranks show whether they
 * are the first engine's.
 */
async function resume(workers: Workers, { file, pids }: Abandoned): Promise<void> {
  const group = workers.group(groupSpec(SAME));
  const counted = await group.call("count", {}, { ...KEY, attempt: 2, since_attempt: 1 });
  deepStrictEqual(
    [counted.outputs, counted.generation],
    [[{ count: 1 }, { count: 1 }], 1],
    "delivered, not run again",
  );
  const waiting = group.call("wait_for", { file }, { ...KEY, attempt: 2, since_attempt: 1 });
  await Deno.writeTextFile(file, "");
  const waited = (await waiting).outputs as { pid: number }[];
  ok(waited.every(({ pid }) => pids.includes(pid)), "the ranks are the first engine's");
  deepStrictEqual((await group.call("count", {}, { key: "later", attempt: 1 })).outputs, [{
    count: 2,
  }, { count: 2 }]);
  deepStrictEqual(pidsOf((await group.call("pids", {}, KEY)).outputs).toSorted(), pids.toSorted());
}

Deno.test({
  name: "real agent: without an engine everything ends after the grace",
  ignore: python === "",
  fn: () =>
    withHome(async (home) => {
      const { engine, pids } = await abandoned(home, { grace_ms: 300 });
      strictEqual(pids.length, 5);
      engine.kill("SIGKILL");
      await engine.status;
      deepStrictEqual(await aliveAfter(pids, 5000), []);
    }),
});

Deno.test({
  name: "real agent: an engine adopts the workers of a killed one and their work",
  ignore: python === "",
  fn: () =>
    withHome(async (home) => {
      const first = await abandoned(home, { grace_ms: 60_000 });
      first.engine.kill("SIGKILL");
      await first.engine.status;
      const events = new Events<WorkersEvent>();
      const workers = await Workers.start({ ...SECOND, home, onEvent: events.push });
      try {
        await resume(workers, first);
        ok(events.all.some((event) => event.type === "agent" && event.state === "adopted"));
      } finally {
        await workers.stop();
      }
      deepStrictEqual(await aliveAfter(first.pids, 0), []);
    }),
});

Deno.test({
  name: "real agent: a frozen engine that wakes up touches nothing",
  ignore: python === "",
  fn: () =>
    withHome(async (home) => {
      const first = await abandoned(home, { grace_ms: 60_000 });
      first.engine.kill("SIGSTOP");
      const workers = await Workers.start({ ...SECOND, home });
      const hub = await Deno.readTextFile(`${home}/runs/run/hub.json`);
      try {
        first.engine.kill("SIGCONT");
        strictEqual(await first.nextLine(), "fenced");
        await first.engine.status;
        strictEqual(await Deno.readTextFile(`${home}/runs/run/hub.json`), hub);
        await resume(workers, first);
      } finally {
        await workers.stop();
      }
    }),
});

Deno.test({
  name: "real agent: an agent that does not connect is ended with its ranks, and a new one starts",
  ignore: python === "",
  fn: () =>
    withHome(async (home) => {
      const { engine, pids } = await abandoned(home, { grace_ms: 60_000 });
      engine.kill("SIGKILL");
      await engine.status;
      const agent = agents().find(({ pid }) => pids.includes(pid))!;
      process.kill(agent.pid, "SIGSTOP");
      const workers = await Workers.start({ ...SECOND, home, adopt_ms: 200 });
      try {
        deepStrictEqual(await aliveAfter(pids, 0), []);
        strictEqual((await workers.group(groupSpec(SAME)).call("echo", {}, KEY)).generation, 1);
      } finally {
        await workers.stop();
      }
    }),
});
