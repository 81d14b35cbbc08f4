import { decode } from "@msgpack/msgpack";
import { BadDataError, type Clock, InfrastructureError } from "../../engine/mod.ts";
import { BlobAssembly } from "./blob_assembly.ts";
import type { Phase } from "../roles/role.ts";
import { operationPhase } from "../roles/table.ts";
import { LIMITS } from "./limits.ts";
import { AgentMessage, type EngineMessage, type HeldTask } from "./protocol.ts";

/** The parts of a WebSocket that a link uses. */
export interface FrameSocket {
  send(data: string): void;
  close(code: number, reason: string): void;
  get bufferedAmount(): number;
}

type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
type Numbered = Extract<EngineMessage, { seq: number }>;
/** A reliable message before the link gives it its number and epoch. */
export type ReliableMessage = Without<Numbered, "seq" | "epoch">;
export type Hello = Extract<AgentMessage, { type: "hello" }>;

/** Messages that wait for their acknowledgement, together: a reconnect sends them all again. */
const OUTBOX_BYTES_MAX = LIMITS.message_bytes_max;
/**
 * A socket with more unsent bytes is dropped because its reader is too slow. A reconnect sends less
 * than this, so it can always catch up.
 */
const UNSENT_BYTES_MAX = 2 * OUTBOX_BYTES_MAX;
/** Fault tests do not count periodic frames: counting them would measure time. */
const UNCOUNTED = new Set(["heartbeat", "progress", "log", "ack", "release"]);
/** Unacknowledged messages that may wait for an agent. */
const OUTBOX_MAX = 1024;
/** An agent that breaks the protocol this often is given up. */
const VIOLATIONS_MAX = 3;

type LinkOptions = {
  agent_id: string;
  run: string;
  epoch: number;
  engine_boot: string;
  clock: Clock;
  heartbeat_ms: number;
  grace_ms: number;
  /** From SIGTERM to the agent to its end. */
  preempt_grace_ms: number;
  /**
   * The agent may have served earlier engines of this run. Its first hello says what it keeps for
   * them.
   */
  adopted?: boolean;
  /** Fault tests count frames by this. */
  onFrame: (phase: Phase) => void;
};

/** The tasks of a hello that a call can still request: those of living generations. */
export function heldTasks({ groups, tasks }: Hello): HeldTask[] {
  const lives = new Map(groups.filter(isAlive).map(({ group, generation }) => [group, generation]));
  return tasks.filter((task) =>
    lives.get(task.group) === task.generation && !(task.cancelled && task.state === "finished")
  );
}

function isAlive({ state }: { state: string }): boolean {
  return state === "starting" || state === "ready";
}

/**
 * One agent's boot as the engine sees it: numbers what is sent, keeps it until it is acknowledged,
 * sends the rest again when the agent comes back on another socket, and drops what arrives twice.
 * @internal
 */
export class AgentLink {
  readonly agentId: string;
  readonly blobs = new BlobAssembly();
  /** Called once for each message that is new. */
  onMessage: (message: AgentMessage) => void = () => {};
  /** Called when the agent breaks the protocol; at `fatal` it must be replaced. */
  onViolation: (reason: string, fatal: boolean) => void = () => {};
  #options: LinkOptions;
  #socket: FrameSocket | null = null;
  #bootId: string | null = null;
  /** The engine that the agent had served when it first came. */
  #formerBoot: string | null = null;
  #sentSeq = 0;
  #receivedSeq = 0;
  #outbox: { message: Numbered; text: string; bytes: number }[] = [];
  #phases = new Map<string, Phase>();
  /** Tasks whose answers the agent keeps, or will. */
  #kept = new Set<string>();
  #heardAt: number;
  #violations = 0;
  #closed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.agentId = options.agent_id;
    this.#heardAt = options.clock.monotonic();
  }

  /** Null until the agent's first hello. */
  get bootId(): string | null {
    return this.#bootId;
  }

  get attached(): boolean {
    return this.#socket !== null;
  }

  /** Milliseconds since the agent's last frame, or since the link was made. */
  get silentMs(): number {
    return this.#options.clock.monotonic() - this.#heardAt;
  }

  /**
   * Sends now if the agent is connected, else when it connects.
   * @throws {EngineError} If the message is too large, or too much waits for the agent.
   */
  send(message: ReliableMessage, phase: Phase = "other"): void {
    const numbered = { ...message, epoch: this.#options.epoch, seq: this.#sentSeq + 1 } as Numbered;
    const text = JSON.stringify(numbered);
    const bytes = new TextEncoder().encode(text).length;
    this.#refuse(numbered, bytes);
    this.#sentSeq += 1;
    this.#outbox.push({ message: numbered, text, bytes });
    if (numbered.type === "task") {
      this.#expect(numbered.task, phase);
    }
    this.#write(numbered, text);
  }

  #refuse(message: Numbered, bytes: number): void {
    // Other messages are short.
    if (message.type !== "task" && message.type !== "start_group") return;
    const what = message.type === "task"
      ? `operation '${message.op}'`
      : `the start of ${message.group}`;
    const facts = { agent_id: this.agentId, bytes, limit: LIMITS.message_bytes_max };
    if (bytes > LIMITS.message_bytes_max) {
      throw new BadDataError(
        `Cannot send ${what} to agent '${this.agentId}' because it has ${bytes} bytes: a ` +
          "message holds at most " +
          `${LIMITS.message_bytes_max}. Fix: shorten its configuration`,
        facts,
      );
    }
    const waiting = this.#outbox.reduce((sum, sent) => sum + sent.bytes, 0);
    if (this.#outbox.length >= OUTBOX_MAX || (waiting > 0 && waiting + bytes > OUTBOX_BYTES_MAX)) {
      throw new InfrastructureError(
        `Cannot send ${what} to agent '${this.agentId}' because ${this.#outbox.length} ` +
          `messages of ${waiting} bytes ` +
          "wait for its acknowledgement. Fix: find out why its host does not answer",
        facts,
      );
    }
  }

  #expect(task: string, phase: Phase): void {
    this.#phases.set(task, phase);
    this.#kept.add(task);
    this.blobs.expect(task);
  }

  /** The engine is done with the task. Later frames about it are ignored. */
  forget(task: string): void {
    this.#phases.delete(task);
    this.blobs.forget(task);
  }

  /** Tells the agent to drop the task's answer: its work is durable, or nobody needs it. */
  release(task: string): void {
    if (this.#kept.delete(task) && !this.#closed) this.send({ type: "release", task });
  }

  /** Whether a hello may continue this link: its first boot, or the same boot again. */
  admits(hello: Hello): boolean {
    if (this.#closed) return false;
    if (this.#bootId === null) return this.#options.adopted === true || hello.engine_boot === null;
    const ours = hello.engine_boot === this.#options.engine_boot;
    const former = hello.engine_boot === this.#formerBoot; // Its first welcome was lost.
    return this.#bootId === hello.boot_id && (ours ? hello.received_seq <= this.#sentSeq : former);
  }

  /**
   * Uses `socket` for the agent from now on. Answers its hello and resends what it has not
   * received.
   */
  attach(socket: FrameSocket, hello: Hello): void {
    this.#socket?.close(4000, "replaced by a newer socket of the same boot");
    if (this.#bootId === null) this.#inherit(hello);
    this.#socket = socket;
    this.#heardAt = this.#options.clock.monotonic();
    const { epoch, engine_boot, run, heartbeat_ms, grace_ms, preempt_grace_ms } = this.#options;
    const tasks = hello.tasks.map((held) => ({ task: held.task, verdict: this.#verdict(held) }));
    if (hello.engine_boot === engine_boot) this.#acknowledged(hello.received_seq);
    this.#write({
      type: "welcome",
      epoch,
      engine_boot,
      run,
      heartbeat_ms,
      grace_ms,
      preempt_grace_ms,
      received_seq: this.#receivedSeq,
      verdict: "continue",
      tasks,
    });
    for (const { message, text } of this.#outbox) this.#write(message, text);
    this.onMessage(hello);
  }

  #inherit(hello: Hello): void {
    this.#bootId = hello.boot_id;
    this.#formerBoot = hello.engine_boot;
    const roles = new Map(hello.groups.map(({ group, role }) => [group, role]));
    for (const { task, group, op } of heldTasks(hello)) {
      this.#expect(task, operationPhase(roles.get(group)!, op));
    }
  }

  #verdict({ task, state }: HeldTask): "continue" | "deliver" | "keep" | "drop" {
    if (this.#phases.has(task)) return state === "finished" ? "deliver" : "continue";
    return this.#kept.has(task) ? "keep" : "drop";
  }

  detach(socket: FrameSocket): void {
    if (this.#socket === socket) this.#socket = null;
  }

  /** Ends the link permanently: later hellos are answered `drop`. */
  close(): void {
    this.#closed = true;
    this.#socket?.close(1000, "done");
    this.#socket = null;
    this.#outbox = [];
  }

  /** Receives one frame from the agent on its current socket. */
  receive(socket: FrameSocket, data: Uint8Array, binary: boolean): void {
    if (socket !== this.#socket) return;
    this.#heardAt = this.#options.clock.monotonic();
    let message: AgentMessage | null = null;
    try {
      if (binary) this.#receiveBlob(data);
      else message = this.#accepted(AgentMessage.parse(JSON.parse(new TextDecoder().decode(data))));
    } catch (error) {
      this.#violated(error instanceof Error ? error.message : String(error));
    }
    // Outside the try: an error of the receiver is not the agent's fault.
    if (message) this.onMessage(message);
  }

  #receiveBlob(data: Uint8Array): void {
    const frame = decode(data) as { task?: unknown };
    this.#count({ type: "blob", task: String(frame?.task) });
    this.blobs.add(frame);
  }

  /** The message if it is new. Null if it was for the link itself or arrived before. */
  #accepted(message: AgentMessage): AgentMessage | null {
    this.#count(message);
    if (message.type === "hello") throw new RangeError("a socket says hello once");
    if (message.type === "ack") {
      this.#acknowledged(message.received_seq);
      return null;
    }
    if (!("seq" in message)) return message;
    if (message.seq > this.#receivedSeq + 1) {
      throw new RangeError(
        `message ${message.seq} came after ${this.#receivedSeq}: a message in between is missing`,
      );
    }
    const isNew = message.seq === this.#receivedSeq + 1;
    if (isNew) this.#receivedSeq = message.seq;
    // Acknowledges the frame only. The agent keeps a task's answer until `release`.
    this.#write({ type: "ack", epoch: this.#options.epoch, received_seq: this.#receivedSeq });
    return isNew ? message : null;
  }

  #acknowledged(seq: number): void {
    if (seq > this.#sentSeq) {
      throw new RangeError(
        `message ${seq} was acknowledged, but ${this.#sentSeq} is the last ` +
          `one sent`,
      );
    }
    this.#outbox = this.#outbox.filter(({ message }) => message.seq > seq);
  }

  /** The agent sent an invalid frame on its current socket. */
  broken(socket: FrameSocket, reason: string): void {
    if (socket === this.#socket) this.#violated(reason);
  }

  #violated(reason: string): void {
    this.#violations += 1;
    this.#socket?.close(1008, reason.slice(0, 100));
    this.#socket = null;
    this.onViolation(reason, this.#violations >= VIOLATIONS_MAX);
  }

  #count(message: { type: string; task?: string }): void {
    if (UNCOUNTED.has(message.type)) return;
    this.#options.onFrame(this.#phases.get(message.task ?? "") ?? "other");
  }

  #write(message: EngineMessage, text = JSON.stringify(message)): void {
    const socket = this.#socket;
    if (!socket) return;
    if (socket.bufferedAmount > UNSENT_BYTES_MAX) {
      socket.close(1013, "too slow");
      this.#socket = null;
      return;
    }
    this.#count(message);
    socket.send(text);
  }
}
