/**
 * One script, played with the Python agent and with the fake one that simulations use: they say the
 * same.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { join } from "node:path";
import { systemClock } from "../../../engine/mod.ts";
import type { AgentLink } from "../../../workers/line/agent_link.ts";
import { type AgentMessage, Hub, type Launcher, localLauncher } from "../../../workers/mod.ts";
import { FakeAgent, type FakeIO } from "../../../testing/mod.ts";
import { homeNonce, processNonce } from "../../../workers/processes/process_sweep.ts";
import { Events, withHome } from "../fixtures.ts";

const python = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";
const ECHO_PATH = new URL("../../python", import.meta.url).pathname;
const AGENT = "local-1";
/** They come with time, or say no more than that a frame arrived. */
const UNCOMPARED = new Set(["heartbeat", "progress", "log", "accepted"]);

const operations = {
  echo: (args: unknown, { key, attempt }: FakeIO) => ({ rank: 0, args, key, attempt }),
  sleep_until_cancelled: (_: unknown, { signal }: FakeIO) =>
    new Promise((_, reject) =>
      signal.addEventListener("abort", () => reject(new Error("cancelled")))
    ),
};

const fake: Launcher = {
  start(start) {
    const agent = new FakeAgent(start, { operations: { trainer: operations } });
    agent.live(systemClock);
    return Promise.resolve({
      pid: 1,
      exited: agent.exited,
      destroy: () => Promise.resolve(agent.exit()),
    });
  },
};

async function real(home: string): Promise<Launcher> {
  const nonce = processNonce(await homeNonce(home), "run");
  const dirs = { home, artifacts_dir: `${home}/artifacts`, faults_dir: `${home}/faults` };
  return localLauncher({ python, nonce, ...dirs, clock: systemClock });
}

/** What of a message is the protocol's, and not this machine's. */
function compared(message: AgentMessage): unknown {
  switch (message.type) {
    case "hello":
      return {
        type: "hello",
        first: message.engine_boot === null,
        groups: message.groups.map(({ group, generation, role, spec_hash, state }) => [
          group,
          generation,
          role,
          spec_hash,
          state,
        ]),
        tasks: message.tasks.map((
          { task, op, key, attempt, epoch, state, cancelled, args_hash },
        ) => [
          task,
          op,
          key,
          attempt,
          epoch,
          state,
          cancelled,
          args_hash,
        ]),
      };
    case "result":
      return {
        ...message,
        outputs: message.outputs.map((output) =>
          "json" in output ? JSON.parse(output.json) : output
        ),
      };
    case "error":
      return { ...message, failures: message.failures.map(({ rank, cause }) => ({ rank, cause })) };
    case "group":
      return {
        type: "group",
        seq: message.seq,
        state: message.state,
        generation: message.generation,
      };
    default:
      return message;
  }
}

/** An engine of the script: its line to the agent, and what it hears. */
class Side {
  readonly heard = new Events<AgentMessage>();
  #tasks = 0;

  constructor(readonly link: AgentLink, readonly epoch: number) {
    link.onMessage = this.heard.push;
  }

  task(op: string, args: unknown): string {
    const task = `trainer/g1/t${this.epoch}.${++this.#tasks}`;
    const work = {
      group: "trainer",
      generation: 1,
      key: `k${this.#tasks}`,
      attempt: 1,
      args_hash: `h${this.#tasks}`,
    };
    this.link.send({ type: "task", task, ...work, op, args: { json: JSON.stringify(args) } });
    return task;
  }

  async answer(task: string): Promise<void> {
    await this.heard.until((m) => (m.type === "result" || m.type === "error") && m.task === task);
  }

  get comparedMessages(): unknown[] {
    return this.heard.all.filter(({ type }) => !UNCOMPARED.has(type)).map(compared);
  }
}

async function play(
  home: string,
  launcher: Launcher,
): Promise<{ first: unknown[]; second: unknown[]; exit: string }> {
  const options = { run: "run", file: join(home, "hub.json"), grace_ms: 20_000, heartbeat_ms: 200 };
  const hub = await Hub.start({ ...options, epoch: 1 });
  const one = new Side(hub.expect(AGENT), 1);
  const agent = await launcher.start({
    agent_id: AGENT,
    hub_file: hub.file,
    log_path: join(home, "agent.log"),
  });
  await Deno.mkdir(join(home, "logs"), { recursive: true });
  const what = {
    group: "trainer",
    role: "trainer",
    ranks: 1,
    python,
    module: "echo_worker",
    spec: {},
  };
  const how = {
    generation: 1,
    spec_hash: "s",
    interface: null,
    log_dir: join(home, "logs"),
    start_timeout_ms: 60_000,
  };
  one.link.send({ type: "start_group", ...what, ...how, env: { PYTHONPATH: ECHO_PATH } });
  await one.heard.until((m) => m.type === "group" && m.state === "ready");
  const released = one.task("echo", { x: 1 });
  await one.answer(released);
  one.link.release(released);
  await one.answer(one.task("echo", { x: 2 }));
  const cancelled = one.task("sleep_until_cancelled", {});
  one.link.send({ type: "cancel", task: cancelled });
  await one.answer(cancelled);
  const sleeping = one.task("sleep_until_cancelled", {});
  // It has the task by then: frames come in order.
  await one.heard.next((m) => m.type === "heartbeat");
  await one.heard.next((m) => m.type === "heartbeat");
  // Another engine takes over while the first still holds its line, as a frozen one does.
  const next = await Hub.listen({ ...options, epoch: 2 });
  const two = new Side(next.expect(AGENT, { adopted: true }), 2);
  await next.announce();
  await two.heard.until((m) => m.type === "hello");
  // Kept since the first engine had it: nobody released it.
  await two.heard.until((m) => m.type === "result");
  two.link.send({ type: "cancel", task: sleeping });
  await two.answer(sleeping);
  await two.answer(two.task("echo", { x: 3 }));
  two.link.send({ type: "stop_group", group: "trainer", generation: 1, grace_ms: 2000 });
  await two.heard.until((m) => m.type === "group" && m.state === "stopped");
  two.link.send({ type: "shutdown" });
  const exit = await agent.exited;
  await agent.destroy();
  await next.close();
  await hub.close();
  return { first: one.comparedMessages, second: two.comparedMessages, exit };
}

Deno.test({
  name: "the fake agent says what the Python agent says",
  ignore: python === "",
  fn: () =>
    withHome(async (home) => {
      const [python, typescript] = [
        await play(join(home, "real"), await real(home)),
        await play(join(home, "fake"), fake),
      ];
      ok(python.first.length >= 5 && python.second.length >= 5);
      deepStrictEqual(typescript.first, python.first);
      deepStrictEqual(typescript.second, python.second);
      strictEqual(/exit code 0/.test(python.exit), /exit code 0/.test(typescript.exit));
    }),
});
