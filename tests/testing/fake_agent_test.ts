import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { systemClock } from "../../engine/mod.ts";
import {
  failureReport,
  FakeAgent,
  FakeFailure,
  type FakeIO,
  SimulatedWorld,
} from "../../testing/mod.ts";
import type { AgentLine, AgentMessage, EngineMessage, LineListener } from "../../workers/mod.ts";
import { Events } from "../workers/fixtures.ts";

type Heard<T extends AgentMessage["type"]> = Extract<AgentMessage, { type: T }>;
type Message = { type: EngineMessage["type"] } & Record<string, unknown>;

const START = { agent_id: "a", hub_file: "unused", log_path: "unused" };
const operations = {
  double: (args: unknown) => (args as { x: number }).x * 2,
  fail: () => {
    throw new FakeFailure({ cause: "out_of_memory", message: "full" }, { rank: 1 });
  },
  wait: (_: unknown, { signal }: FakeIO) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
};

/** The engine's end of an agent's line, without a network. */
class Engine {
  readonly heard = new Events<AgentMessage>();
  #seq = 0;
  #listener: LineListener | null = null;

  constructor(readonly epoch = 1, readonly engine_boot = `engine-${epoch}`) {}

  get line(): AgentLine {
    const { epoch, engine_boot } = this;
    return {
      hub: () => ({ url: "none", token: "t", epoch, engine_boot }),
      connect: (_, listener) => {
        this.#listener = listener;
        queueMicrotask(() => listener.open());
        const send = (frame: string | Uint8Array) =>
          typeof frame === "string" && this.heard.push(JSON.parse(frame));
        return { isOpen: true, send, terminate: () => this.hangUp() };
      },
    };
  }

  hangUp(): void {
    this.#listener?.closed();
    this.#listener = null;
  }

  say(message: Message): void {
    this.#listener?.frame(JSON.stringify({ epoch: this.epoch, ...message }));
  }

  /** A message that has a number. */
  ask(message: Message): void {
    this.say({ seq: ++this.#seq, ...message });
  }

  welcome(changes: object = {}): void {
    const { engine_boot } = this;
    const times = { heartbeat_ms: 200, grace_ms: 5000, preempt_grace_ms: 0 };
    const fresh = { received_seq: 0, verdict: "continue", tasks: [] };
    this.say({ type: "welcome", run: "run", engine_boot, ...times, ...fresh, ...changes });
  }

  startGroup(generation = 1, ranks = 1): void {
    const process = { role: "trainer", python: "python3", module: "m", env: {}, spec: {} };
    const rest = { spec_hash: "s", interface: null, log_dir: "", start_timeout_ms: 1000 };
    this.ask({ type: "start_group", group: "g", generation, ranks, ...process, ...rest });
  }

  /** Gives the group a task. */
  give(op: string, { task = `${op}-task`, args = {} as unknown } = {}): void {
    const work = { group: "g", generation: 1, key: "k", attempt: 1, args_hash: "h" };
    this.ask({ type: "task", task, op, args: { json: JSON.stringify(args) }, ...work });
  }

  async next<T extends AgentMessage["type"]>(type: T): Promise<Heard<T>> {
    return await this.heard.until((message) => message.type === type) as Heard<T>;
  }

  all<T extends AgentMessage["type"]>(type: T): Heard<T>[] {
    return this.heard.all.filter((message) => message.type === type) as Heard<T>[];
  }
}

/** An agent that an engine has welcomed, and that has a group of `ranks`. */
async function welcomed({ ranks = 1 } = {}): Promise<{ agent: FakeAgent; engine: Engine }> {
  const engine = new Engine();
  const agent = new FakeAgent(START, { operations: { trainer: operations } }, engine.line);
  const connected = agent.connect();
  await engine.next("hello");
  engine.welcome();
  await connected;
  engine.startGroup(1, ranks);
  return { agent, engine };
}

Deno.test("FakeAgent says who it is before anything else, and that it holds nothing", async () => {
  const { agent, engine } = await welcomed();
  const [hello] = engine.heard.all as [Heard<"hello">];
  deepStrictEqual([hello.type, hello.agent_id, hello.boot_id], ["hello", "a", agent.bootId]);
  deepStrictEqual([hello.engine_boot, hello.groups, hello.tasks], [null, [], []]);
  deepStrictEqual(agent.readyGroups, ["g"]);
});

Deno.test("FakeAgent cannot connect before an engine has announced itself", () => {
  const line = { hub: () => null, connect: () => ({}) as never };
  throws(() => new FakeAgent(START, { operations: {} }, line).connect(), {
    message: "Cannot connect agent 'a' because no engine has announced itself",
  });
});

Deno.test("FakeAgent answers for every rank, and counts a repeated message once", async () => {
  const { engine } = await welcomed({ ranks: 2 });
  engine.give("double", { args: { x: 21 } });
  const { task, outputs } = await engine.next("result");
  deepStrictEqual([task, outputs], ["double-task", [{ json: "42" }, { json: "42" }]]);
  engine.ask({ type: "stop_group", group: "g", generation: 1, grace_ms: 0, seq: 2 });
  strictEqual(engine.all("group").length, 1, "its number was the task's");
  deepStrictEqual(engine.all("ack").map(({ received_seq }) => received_seq), [1, 2]);
});

Deno.test("FakeAgent reports what an operation throws, and one that its role lacks", async () => {
  const { engine } = await welcomed();
  engine.give("fail");
  const full = await engine.next("error");
  deepStrictEqual(full.failures, [
    failureReport({ cause: "out_of_memory", message: "full" }),
    failureReport({ rank: 1 }),
  ]);
  engine.give("dance");
  await engine.heard.until((message) => message.type === "error" && message.task === "dance-task");
  strictEqual(
    engine.all("error")[1]!.failures[0]!.message,
    "role 'trainer' has no operation 'dance'",
  );
});

Deno.test("FakeAgent cancels the task that is named, and says so", async () => {
  const { engine } = await welcomed();
  engine.give("wait", { task: "one" });
  engine.give("wait", { task: "two" });
  engine.ask({ type: "cancel", task: "two" });
  const { task, failures: [failure] } = await engine.next("error");
  await systemClock.turn();
  deepStrictEqual([task, failure!.cause], ["two", "cancelled"]);
  strictEqual(engine.all("error").length, 1);
});

Deno.test("FakeAgent fences an engine of a lower epoch, and does nothing for it", async () => {
  const { agent, engine } = await welcomed();
  engine.say({ type: "ack", epoch: 3, received_seq: 0 });
  engine.ask({ type: "stop_group", group: "g", generation: 1, grace_ms: 0 });
  strictEqual((await engine.next("fenced")).epoch, 3);
  deepStrictEqual(agent.readyGroups, ["g"]);
});

Deno.test("FakeAgent keeps an answer for the next engine until it is released", async () => {
  const { agent, engine } = await welcomed();
  for (const task of ["kept", "released"]) engine.give("double", { task, args: { x: 1 } });
  await engine.heard.until((message) => message.type === "result" && message.task === "released");
  engine.ask({ type: "release", task: "released" });
  agent.dropSocket();
  const again = agent.connect();
  await engine.heard.until((message) => message.type === "hello" && message.groups.length === 1);
  const [, hello] = engine.all("hello");
  deepStrictEqual(hello!.tasks.map(({ task, state }) => [task, state]), [["kept", "finished"]]);
  engine.welcome({ engine_boot: "engine-2", tasks: [{ task: "kept", verdict: "deliver" }] });
  await again;
  deepStrictEqual(engine.all("result").map(({ task, seq }) => [task, seq]), [
    ["kept", 2],
    ["released", 3],
    ["kept", 2],
  ]);
});

Deno.test("FakeAgent.failGroup() ends what runs, and says only that it failed", async () => {
  const { agent, engine } = await welcomed();
  engine.give("wait");
  agent.failGroup("g", [{ cause: "out_of_memory" }]);
  await engine.heard.until((message) => message.type === "group" && message.state === "failed");
  await systemClock.turn(); // What the aborted operation would say, it has said.
  const { ranks, failures } = engine.all("group")[1]!;
  deepStrictEqual([ranks[0]!.state, failures[0]!.cause], ["exited", "out_of_memory"]);
  deepStrictEqual([agent.readyGroups, engine.all("error")], [[], []]);
  throws(() => agent.failGroup("h", []), /Cannot fail group 'h' because it was not started/);
});

Deno.test("FakeAgent ends when the engine drops it or shuts it down", async () => {
  const dropped = await welcomed();
  dropped.engine.welcome({ verdict: "drop" });
  strictEqual(await dropped.agent.exited, "the agent was dropped");
  const { agent, engine } = await welcomed();
  engine.ask({ type: "shutdown" });
  strictEqual(await agent.exited, "the agent ended with exit code 0");
  strictEqual(agent.alive, false);
});

Deno.test("FakeAgent.live() ends the agent once no engine was there for the grace", async () => {
  const { agent, engine } = await welcomed();
  const world = new SimulatedWorld(1);
  const living = agent.live(world.clock);
  await world.run({ limit_ms: 3000 });
  deepStrictEqual([agent.alive, engine.all("heartbeat").length], [true, 4]);
  // The engine's file names an earlier epoch than the agent has seen: nobody to go to.
  engine.say({ type: "ack", epoch: 2, received_seq: 0 });
  engine.hangUp();
  await world.run({ limit_ms: 8000 });
  strictEqual(agent.alive, true);
  await world.run({ limit_ms: 8500 });
  await living;
  strictEqual(await agent.exited, "the agent ended with exit code 3");
});
