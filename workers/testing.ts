import { encode } from "@msgpack/msgpack";
import { createHash } from "node:crypto";
// @ts-types="@types/ws"
import { WebSocket } from "ws";
import type { HubFile } from "./hub_door.ts";
import type { AgentProcess, AgentStart, Launcher } from "./local_launcher.ts";
import {
  type AgentMessage,
  type BlobFrame,
  EngineMessage,
  type FailureReport,
  FRAME_BYTES_MAX,
  type GroupState,
  type HeldGroup,
  type HeldTask,
  PROTOCOL_VERSION,
} from "./protocol.ts";

/** What a scripted operation gets besides its arguments. */
export type FakeIO = {
  key: string;
  attempt: number;
  group: string;
  generation: number;
  /** Aborted when the engine cancels the operation, or the group ends. */
  signal: AbortSignal;
  progress(phase: string, done: number, total?: number): void;
  /** Delivered with the result. Returns its index. */
  blob(data: Uint8Array): number;
};

/** An operation of a fake worker: what it returns is rank 0's output; what it throws becomes an `error` message. */
export type FakeOperation = (args: unknown, io: FakeIO) => unknown;

export type FakeScript = {
  /** By role, then by operation. */
  operations: Record<string, Record<string, FakeOperation>>;
  /** What rank 0 says of itself when ready, by role. */
  info?: Record<string, Record<string, unknown>>;
  /** Failures of a start, instead of becoming ready. */
  failStart?: (group: string, generation: number) => FailureReport[] | null;
};

/** A thrown failure with a cause of one's own; any other thrown value is `other`. */
export class FakeFailure extends Error {
  readonly reports: FailureReport[];
  constructor(...reports: Partial<FailureReport>[]) {
    super(reports[0]?.message ?? "scripted failure");
    this.reports = reports.map((report) => failureReport(report));
  }
}

/** A FailureReport with every field. */
export function failureReport(report: Partial<FailureReport>): FailureReport {
  return {
    rank: 0,
    cause: "other",
    exception: null,
    message: "scripted failure",
    traceback: null,
    exit_code: null,
    signal: null,
    log_tail: [],
    log_errors: [],
    kernel: [],
    oom_kills: null,
    log_path: "",
    at_ms: 0,
    ...report,
  };
}

type StartGroup = Extract<EngineMessage, { type: "start_group" }>;
type Task = Extract<EngineMessage, { type: "task" }>;
type Reliable = Extract<AgentMessage, { seq: number }>;
type Outgoing = { message: Reliable; blobs: Uint8Array[] };
type Answer = { message: Unnumbered<Reliable>; blobs: Uint8Array[] };
type Given = { task: Task; cancelled: AbortController; answer: Answer | null };
type Unnumbered<T> = T extends unknown ? Omit<T, "seq"> : never;

/**
 * An agent without processes: speaks the real protocol over a real socket, and runs scripted operations in this process. For tests
 * of flows, and for trying a graph without Python.
 */
export class FakeAgent {
  readonly agentId: string;
  readonly bootId = crypto.randomUUID();
  /** Engine messages, in the order they came. */
  readonly received: EngineMessage[] = [];
  #hubFile: string;
  #script: FakeScript;
  #socket: WebSocket | null = null;
  #engineBoot: string | null = null;
  #receivedSeq = 0;
  #seq = 0;
  #outbox: Outgoing[] = [];
  #groups = new Map<string, { start: StartGroup; state: GroupState["state"]; ended: AbortController }>();
  /** Those that run, and those whose answers were not released, in the order they were given. */
  #tasks = new Map<string, Given>();
  #following: ReturnType<typeof setInterval> | undefined;
  #closed: Promise<void> = Promise.resolve();
  #exit = Promise.withResolvers<string>();
  #ended = false;

  constructor(start: AgentStart, script: FakeScript) {
    this.agentId = start.agentId;
    this.#hubFile = start.hubFile;
    this.#script = script;
  }

  get alive(): boolean {
    return !this.#ended;
  }

  get exited(): Promise<string> {
    return this.#exit.promise;
  }

  /** Connects and says hello. Settles when the hub has welcomed or refused it. */
  connect(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    const greeted = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    this.#closed = closed.promise;
    const hub: HubFile = JSON.parse(Deno.readTextFileSync(this.#hubFile));
    const socket = new WebSocket(hub.url, { headers: { Authorization: `Bearer ${hub.token}` } });
    socket.on("open", () => this.#write(socket, this.#hello()));
    socket.on("message", (data: Uint8Array) => {
      this.#take(socket, JSON.parse(new TextDecoder().decode(data)));
      greeted.resolve();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      if (this.#socket === socket) this.#socket = null;
      greeted.resolve();
      closed.resolve();
    });
    return greeted.promise;
  }

  /** Looks for another engine in the hub's file, as a real agent does, and goes to it. */
  follow(): void {
    const own = this.#readHub()?.engine_boot;
    this.#following ??= setInterval(() => {
      const found = this.#readHub()?.engine_boot;
      if (!found || found === own) return;
      clearInterval(this.#following);
      this.#following = undefined;
      this.dropSocket();
      this.connect();
    }, 2);
  }

  #readHub(): HubFile | null {
    try {
      return JSON.parse(Deno.readTextFileSync(this.#hubFile));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
  }

  /** Settles when the socket of the last `connect` is closed, by whichever side. */
  get closed(): Promise<void> {
    return this.#closed;
  }

  /** Cuts the line as a broken network would. `connect` comes back with the same boot. */
  dropSocket(): void {
    this.#socket?.terminate();
    this.#socket = null;
  }

  heartbeat(): void {
    if (this.#socket) this.#write(this.#socket, { type: "heartbeat", groups: this.#states() });
  }

  /** A rank of the group died, and its operation with it. */
  failGroup(group: string, reports: Partial<FailureReport>[]): void {
    const entry = this.#groups.get(group);
    if (!entry) throw new RangeError(`Cannot fail group '${group}' as it was not started`);
    entry.ended.abort(new Error("the group failed"));
    entry.state = "failed";
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
    const tasks = [...this.#tasks.values()].map(({ task: given, cancelled, answer }): HeldTask => {
      const { task, group, generation, key, attempt, epoch, op, args_hash } = given;
      const state = answer ? "finished" : "running";
      const held = { task, group, generation, key, attempt, epoch, op, args_hash };
      return { ...held, cancelled: cancelled.signal.aborted, state };
    });
    const groups = [...this.#groups.values()].map(({ start, state }): HeldGroup => {
      const { role, spec_hash } = start;
      const info = state === "ready" ? this.#script.info?.[role] ?? {} : {};
      return { ...stateOf(start, state), role, spec_hash, info };
    });
    return {
      type: "hello",
      protocol: PROTOCOL_VERSION,
      agent_id,
      boot_id,
      engine_boot: this.#engineBoot,
      pid: 1,
      host: "fake",
      packages: {},
      groups,
      tasks,
      received_seq: this.#receivedSeq,
    };
  }

  #states(): GroupState[] {
    return [...this.#groups.values()].map((entry) => stateOf(entry.start, entry.state));
  }

  #take(socket: WebSocket, value: unknown): void {
    const message = EngineMessage.parse(value);
    this.received.push(message);
    if (message.type === "welcome") return this.#welcomed(socket, message);
    if (message.type === "ack") {
      this.#outbox = this.#outbox.filter(({ message: sent }) => sent.seq > message.received_seq);
      return;
    }
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

  #welcomed(socket: WebSocket, message: Extract<EngineMessage, { type: "welcome" }>): void {
    if (message.verdict === "drop") return this.exit("the agent was dropped");
    this.#socket = socket;
    if (message.engine_boot !== this.#engineBoot) this.#forEngine(message.engine_boot);
    this.#outbox = this.#outbox.filter(({ message: sent }) => sent.seq > message.received_seq);
    for (const { task, verdict } of message.tasks) this.#judged(task, verdict);
    for (const outgoing of this.#outbox) this.#transmit(outgoing);
  }

  /** Numbers begin anew. Answers are sent as this engine asks for them. */
  #forEngine(engineBoot: string): void {
    this.#engineBoot = engineBoot;
    this.#receivedSeq = 0;
    this.#outbox = this.#outbox.filter(({ message }) => message.type === "group")
      .map(({ message, blobs }, i) => ({ message: { ...message, seq: i + 1 }, blobs }));
    this.#seq = this.#outbox.length;
  }

  #judged(task: string, verdict: "go_on" | "deliver" | "keep" | "drop"): void {
    const given = this.#tasks.get(task);
    if (verdict === "drop") this.#tasks.delete(task);
    if (!given?.answer || verdict === "drop" || verdict === "keep") return;
    if (!this.#outbox.some(({ message }) => "task" in message && message.task === task)) {
      this.#queue(given.answer.message, given.answer.blobs);
    }
  }

  #start(start: StartGroup): void {
    this.#groups.get(start.group)?.ended.abort(new Error("replaced"));
    const failures = this.#script.failStart?.(start.group, start.generation) ?? [];
    const state = failures.length > 0 ? "failed" as const : "ready" as const;
    const entry = { start, state, ended: new AbortController() };
    this.#groups.set(start.group, entry);
    this.#sendGroup(entry, failures);
  }

  #stop(group: string, generation: number): void {
    const entry = this.#groups.get(group);
    if (entry?.start.generation !== generation) return;
    entry.ended.abort(new Error("stopped"));
    entry.state = "stopped";
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
      if (!operation) throw new FakeFailure({ message: `role '${entry.start.role}' has no operation '${task.op}'` });
      const output = await operation(task.args, io);
      const outputs = Array.from({ length: entry.start.ranks }, () => output ?? null);
      this.#answer(entry, { type: "result", task: task.task, outputs, blobs: blobs.map(declare) }, blobs);
    } catch (error) {
      const cause = cancelled.signal.aborted ? "cancelled" as const : "other" as const;
      const reports = error instanceof FakeFailure ? error.reports : [failureReport({ cause, message: String(error) })];
      this.#answer(entry, { type: "error", task: task.task, failures: reports }, []);
    }
  }

  /** A generation that has ended says nothing more. */
  #answer(
    entry: { ended: AbortController },
    message: Unnumbered<Reliable> & { task: string },
    blobs: Uint8Array[],
  ): void {
    if (entry.ended.signal.aborted) return void this.#tasks.delete(message.task);
    const given = this.#tasks.get(message.task);
    if (given) given.answer = { message, blobs };
    this.#send(message, blobs);
  }

  #progress(task: string, { phase, done, total }: { phase: string; done: number; total?: number }): void {
    const message = { type: "progress" as const, task, rank: 0, phase, done, total: total ?? null, metrics: {} };
    if (this.#socket) this.#write(this.#socket, message);
  }

  #sendGroup(entry: { start: StartGroup; state: GroupState["state"] }, failures: FailureReport[]): void {
    const info = this.#script.info?.[entry.start.role] ?? {};
    this.#send({ type: "group", ...stateOf(entry.start, entry.state), info, failures });
  }

  #send(message: Unnumbered<Reliable>, blobs: Uint8Array[] = []): void {
    this.#transmit(this.#queue(message, blobs));
  }

  #queue(message: Unnumbered<Reliable>, blobs: Uint8Array[]): Outgoing {
    this.#seq += 1;
    const outgoing = { message: { ...message, seq: this.#seq } as Reliable, blobs };
    this.#outbox.push(outgoing);
    return outgoing;
  }

  #transmit({ message, blobs }: Outgoing): void {
    if (!this.#socket) return;
    if (message.type === "result") {
      for (const frame of framesOf(message.task, blobs)) {
        this.#socket.send(encode(frame));
      }
    }
    this.#write(this.#socket, message);
  }

  #write(socket: WebSocket, message: AgentMessage): void {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  }
}

/**
 * A launcher of fake agents, and the agents that it started.
 *
 * @example
 * ```ts
 * const { launcher } = fakeLauncher({ operations: { trainer: { train: () => ({ version: "v1", steps: [] }) } } });
 * const workers = await Workers.start({ run: "test", epoch: 1, home, attempt: 1, launcher });
 * ```
 */
export function fakeLauncher(script: FakeScript): { launcher: Launcher; agents: FakeAgent[] } {
  const agents: FakeAgent[] = [];
  const processOf = (agent: FakeAgent): AgentProcess => ({
    pid: 1,
    exited: agent.exited,
    destroy: () => Promise.resolve(agent.exit("the agent was killed by SIGKILL")),
  });
  const launcher: Launcher = {
    start(start) {
      const agent = new FakeAgent(start, script);
      agents.push(agent);
      agent.connect();
      return Promise.resolve(processOf(agent));
    },
    find() {
      const agent = agents.findLast(({ alive }) => alive);
      agent?.follow();
      return agent ? { agentId: agent.agentId, process: processOf(agent), nonce: null } : null;
    },
  };
  return { launcher, agents };
}

function* framesOf(task: string, blobs: Uint8Array[]): Generator<BlobFrame> {
  const chunk = FRAME_BYTES_MAX / 2;
  for (const [blob, bytes] of blobs.entries()) {
    for (let offset = 0; offset === 0 || offset < bytes.length; offset += chunk) {
      yield { task, blob, offset, total: bytes.length, data: bytes.slice(offset, offset + chunk) };
    }
  }
}

function declare(data: Uint8Array): { sha256: string; bytes: number } {
  return { sha256: createHash("sha256").update(data).digest("hex"), bytes: data.length };
}

function stateOf({ group, generation, ranks }: StartGroup, state: GroupState["state"]): GroupState {
  const rankState = state === "ready" ? "ready" as const : "exited" as const;
  const ranksOf = Array.from({ length: ranks }, (_, rank) => ({
    rank,
    pid: 1,
    process_start: "0",
    state: rankState,
    exit_code: null,
    signal: null,
    process_state: null,
  }));
  return { group, generation, state, ranks: ranksOf };
}
