import { type Clock, InfrastructureError } from "../engine/mod.ts";
import {
  type AgentLine,
  type AgentMessage,
  type AgentStart,
  type Arguments,
  EngineMessage,
  type FailureReport,
  type HeldTask,
  type LineSocket,
  outputOf,
  PROTOCOL_VERSION,
  webSocketLine,
} from "../workers/mod.ts";
import { declare } from "./fake_blobs.ts";
import { FakeGroup, type StartGroup } from "./fake_group.ts";
import { FakeOutbox, type Reliable, sendTo, type Unnumbered } from "./fake_outbox.ts";
import { failureReport, FakeFailure, type FakeIO, type FakeScript } from "./fake_script.ts";

/** As the real agent has them, in turns of `live`. */
const TICK_MS = 250;
const BEAT_TICKS = 4;
const HANDSHAKE_MS = 10_000;
const DEFAULT_GRACE_MS = 2000;

type Task = Extract<EngineMessage, { type: "task" }>;
type Answer = { message: Unnumbered<Reliable>; blobs: Uint8Array[] };
type HeldEntry = { task: Task; cancelled: AbortController; answer: Answer | null };

/**
 * An agent without processes: the real protocol over a real socket, scripted operations in this
 * process. Tries graphs without Python.
 */
export class FakeAgent {
  /** Its name to the hub. */
  readonly agentId: string;
  /** Changes when an agent restarts. */
  readonly bootId: string = crypto.randomUUID();
  /** Engine messages, in the order they came. */
  readonly received: EngineMessage[] = [];
  readonly #line: AgentLine;
  readonly #script: FakeScript;
  #socket: LineSocket | null = null;
  /** Opened, and not yet welcomed. */
  #knocking: LineSocket | null = null;
  /** The highest seen: a lower one is of an engine that was replaced. */
  #epoch = 0;
  #graceMs = DEFAULT_GRACE_MS;
  #engineBoot: string | null = null;
  #receivedSeq = 0;
  readonly #outbox = new FakeOutbox();
  readonly #groups = new Map<string, FakeGroup>();
  /** Those that run, and those whose answers were not released, in the order they were given. */
  #tasks = new Map<string, HeldEntry>();
  #following: ReturnType<typeof setInterval> | undefined;
  #closed: Promise<void> = Promise.resolve();
  #exit = Promise.withResolvers<string>();
  #ended = false;

  /** Answers by `script`, and finds the engine through the hub file of `start`. */
  constructor(start: AgentStart, script: FakeScript, line = webSocketLine(start.hub_file)) {
    this.agentId = start.agent_id;
    this.#line = line;
    this.#script = script;
  }

  /** False once it has exited. */
  get alive(): boolean {
    return !this.#ended;
  }

  /** Settles with the reason. */
  get exited(): Promise<string> {
    return this.#exit.promise;
  }

  /** Connects and says hello. Settles when the hub has welcomed or refused it. */
  connect(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    const greeted = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    this.#closed = closed.promise;
    const hub = this.#line.hub();
    if (!hub) {
      throw new InfrastructureError(
        `Cannot connect agent '${this.agentId}' because no engine has announced itself`,
      );
    }
    this.#epoch = Math.max(this.#epoch, hub.epoch);
    const socket = this.#knocking = this.#line.connect(hub, {
      open: () => this.#write(socket, this.#hello()),
      frame: (text) => {
        this.#take(socket, JSON.parse(text));
        greeted.resolve();
      },
      closed: () => {
        if (this.#socket === socket) this.#socket = null;
        if (this.#knocking === socket) this.#knocking = null;
        greeted.resolve();
        closed.resolve();
      },
    });
    return greeted.promise;
  }

  /**
   * Lives as the real agent does: beats, comes back after a cut, follows a higher epoch, and ends
   * after the grace without an engine.
   */
  async live(clock: Clock): Promise<void> {
    let seen = clock.monotonic();
    let knocked = seen;
    for (let tick = 0; !this.#ended; tick++) {
      const hub = this.#line.hub();
      const now = clock.monotonic();
      if (hub && hub.epoch > this.#epoch && this.#epoch > 0) this.dropSocket();
      if (this.#socket) seen = now;
      if (this.#knocking && now - knocked > HANDSHAKE_MS) this.dropSocket();
      if (!this.#socket && now - seen > this.#graceMs) {
        return this.exit("the agent ended with exit code 3");
      }
      if (!this.#socket && !this.#knocking && hub && hub.epoch >= this.#epoch) {
        knocked = now;
        this.connect();
      }
      if (tick % BEAT_TICKS === 0) this.heartbeat();
      await clock.sleep(TICK_MS);
    }
  }

  /** Looks for another engine in the hub's file, as a real agent does, and goes to it. */
  follow(): void {
    const engineBoot = this.#line.hub()?.engine_boot;
    this.#following ??= setInterval(() => {
      const found = this.#line.hub()?.engine_boot;
      if (!found || found === engineBoot) return;
      clearInterval(this.#following);
      this.#following = undefined;
      this.dropSocket();
      this.connect();
    }, 2);
  }

  /** Settles when the socket of the last `connect` is closed, by whichever side. */
  get closed(): Promise<void> {
    return this.#closed;
  }

  /** Cuts the line as a broken network would. `connect` comes back with the same boot. */
  dropSocket(): void {
    this.#socket?.terminate();
    this.#knocking?.terminate();
    this.#socket = this.#knocking = null;
  }

  /** Tells the hub that it and its groups live. */
  heartbeat(): void {
    const groups = [...this.#groups.values()].map(({ reported }) => reported);
    if (this.#socket) this.#write(this.#socket, { type: "heartbeat", groups });
  }

  /** Names of the groups whose ranks are there. */
  get readyGroups(): string[] {
    return [...this.#groups].filter(([, { state }]) => state === "ready").map(([name]) => name);
  }

  /** A rank of the group died, and its operation with it. */
  failGroup(group: string, reports: Partial<FailureReport>[]): void {
    const entry = this.#groups.get(group);
    if (!entry) throw new RangeError(`Cannot fail group '${group}' because it was not started`);
    entry.end("failed", "the group failed");
    this.#sendGroup(entry, reports.map((report) => failureReport(report)));
  }

  /** Sends any message, right or wrong. */
  sendRaw(frame: string | Uint8Array): void {
    this.#socket?.send(frame);
  }

  /** The agent's process ends. */
  exit(how = "the agent ended with exit code 1"): void {
    this.#ended = true;
    clearInterval(this.#following);
    for (const { ended } of this.#groups.values()) ended.abort(new Error("the agent ended"));
    this.dropSocket();
    this.#exit.resolve(how);
  }

  #hello(): AgentMessage {
    const { agentId: agent_id, bootId: boot_id } = this;
    const tasks = [...this.#tasks.values()].map(
      ({ task: request, cancelled, answer }): HeldTask => {
        const { task, group, generation, key, attempt, epoch, op, args_hash } = request;
        const state = answer ? "finished" : "running";
        const held = { task, group, generation, key, attempt, epoch, op, args_hash };
        return { ...held, cancelled: cancelled.signal.aborted, state };
      },
    );
    return {
      type: "hello",
      protocol: PROTOCOL_VERSION,
      agent_id,
      boot_id,
      engine_boot: this.#engineBoot,
      pid: 1,
      host: "fake",
      packages: {},
      gpus: this.#script.gpus ?? [],
      gpu_order: null,
      groups: [...this.#groups.values()].map(({ held }) => held),
      tasks,
      received_seq: this.#receivedSeq,
    };
  }

  #take(socket: LineSocket, value: unknown): void {
    const message = EngineMessage.parse(value);
    this.received.push(message);
    if (message.epoch < this.#epoch) {
      return this.#write(socket, { type: "fenced", epoch: this.#epoch });
    }
    this.#epoch = message.epoch;
    if (message.type === "welcome") return this.#welcomed(socket, message);
    if (message.type === "ack") return this.#outbox.received(message.received_seq);
    if (message.seq <= this.#receivedSeq) return;
    this.#receivedSeq = message.seq;
    this.#write(socket, { type: "ack", received_seq: message.seq });
    switch (message.type) {
      case "start_group":
        return this.#start(message);
      case "stop_group":
        return this.#stop(message.group, message.generation);
      case "task":
        return void this.#run(message);
      case "cancel":
        return this.#tasks.get(message.task)?.cancelled.abort(new Error("cancelled"));
      case "release":
        return void this.#tasks.delete(message.task);
      case "shutdown":
        return this.exit("the agent ended with exit code 0");
    }
  }

  #welcomed(socket: LineSocket, message: Extract<EngineMessage, { type: "welcome" }>): void {
    if (message.verdict === "drop") return this.exit("the agent was dropped");
    this.#socket = socket;
    if (this.#knocking === socket) this.#knocking = null;
    this.#graceMs = message.grace_ms;
    if (message.engine_boot !== this.#engineBoot) {
      this.#engineBoot = message.engine_boot;
      this.#receivedSeq = 0;
      this.#outbox.restart();
    }
    this.#outbox.received(message.received_seq);
    for (const { task, verdict } of message.tasks) this.#judged(task, verdict);
    this.#outbox.sendAll(socket);
  }

  #judged(task: string, verdict: "continue" | "deliver" | "keep" | "drop"): void {
    const held = this.#tasks.get(task);
    if (verdict === "drop") this.#tasks.delete(task);
    if (!held?.answer || verdict === "drop" || verdict === "keep") return;
    const { message, blobs } = held.answer;
    if (!this.#outbox.holds(task)) this.#outbox.add(message, blobs);
  }

  #start(start: StartGroup): void {
    this.#groups.get(start.group)?.ended.abort(new Error("replaced"));
    const entry = new FakeGroup(start, this.#script);
    this.#groups.set(start.group, entry);
    const { group, generation, part } = start;
    if (part?.rendezvous === null) {
      this.#send({ type: "rendezvous", group, generation, address: "fake", port: 1 });
    }
    this.#sendGroup(entry, entry.failures);
  }

  #stop(group: string, generation: number): void {
    const entry = this.#groups.get(group);
    if (entry?.start.generation !== generation) return;
    entry.end("stopped", "stopped");
    this.#sendGroup(entry, []);
  }

  async #run(task: Task): Promise<void> {
    const entry = this.#groups.get(task.group);
    if (!entry) return;
    if (this.#tasks.has(task.task)) return;
    const cancelled = new AbortController();
    this.#tasks.set(task.task, { task, cancelled, answer: null });
    const blobs: Uint8Array[] = [];
    const io: FakeIO = {
      key: task.key,
      attempt: task.attempt,
      group: task.group,
      generation: task.generation,
      signal: AbortSignal.any([cancelled.signal, entry.ended.signal]),
      progress: (phase, done, total) => this.#progress(task.task, { phase, done, total }),
      blob: (data) => blobs.push(data) - 1,
    };
    try {
      const operation = this.#script.operations[entry.start.role]?.[task.op];
      if (!operation) {
        throw new FakeFailure({
          message: `role '${entry.start.role}' has no operation '${task.op}'`,
        });
      }
      const output = JSON.stringify(
        await operation(
          "json" in task.args ? JSON.parse(task.args.json) : await this.#read(task.args),
          io,
        ) ?? null,
      );
      const { ranks } = entry.ranks;
      const outputs = Array.from({ length: ranks }, () => outputOf(output, blobs));
      this.#answer(
        entry,
        { type: "result", task: task.task, outputs, blobs: blobs.map(declare) },
        blobs,
      );
    } catch (error) {
      const cause = cancelled.signal.aborted ? "cancelled" as const : "other" as const;
      const reports = error instanceof FakeFailure
        ? error.reports
        : [failureReport({ cause, message: String(error) })];
      this.#answer(entry, { type: "error", task: task.task, failures: reports }, []);
    }
  }

  async #read({ artifact }: Extract<Arguments, { artifact: unknown }>): Promise<unknown> {
    const bytes = await this.#script.artifacts?.get(artifact);
    return JSON.parse(new TextDecoder().decode(bytes));
  }

  /** A generation that has ended says nothing more. */
  #answer(
    entry: { ended: AbortController },
    message: Unnumbered<Reliable> & { task: string },
    blobs: Uint8Array[],
  ): void {
    if (entry.ended.signal.aborted) return void this.#tasks.delete(message.task);
    const held = this.#tasks.get(message.task);
    if (held) held.answer = { message, blobs };
    this.#send(message, blobs);
  }

  #progress(
    task: string,
    { phase, done, total }: { phase: string; done: number; total?: number },
  ): void {
    const message = {
      type: "progress" as const,
      task,
      rank: 0,
      phase,
      done,
      total: total ?? null,
      metrics: {},
    };
    if (this.#socket) this.#write(this.#socket, message);
  }

  #sendGroup({ reported, info }: FakeGroup, failures: FailureReport[]): void {
    this.#send({ type: "group", ...reported, info, failures });
  }

  #send(message: Unnumbered<Reliable>, blobs: Uint8Array[] = []): void {
    const outgoing = this.#outbox.add(message, blobs);
    if (this.#socket) sendTo(this.#socket, outgoing);
  }

  #write(socket: LineSocket, message: AgentMessage): void {
    if (socket.isOpen) socket.send(JSON.stringify(message));
  }
}
