import { encode } from "@msgpack/msgpack";
import type { AgentMessage, LineSocket } from "../workers/mod.ts";
import { framesOf } from "./fake_blobs.ts";

/** A message that is sent again until the hub has it. */
export type Reliable = Extract<AgentMessage, { seq: number }>;
export type Unnumbered<T> = T extends unknown ? Omit<T, "seq"> : never;
type Outgoing = { message: Reliable; blobs: Uint8Array[] };

/** The reliable messages of a fake agent, numbered for one engine, until it has received them. */
export class FakeOutbox {
  #seq = 0;
  #waiting: Outgoing[] = [];

  /** Numbers a message, and keeps it. */
  add(message: Unnumbered<Reliable>, blobs: Uint8Array[]): Outgoing {
    this.#seq += 1;
    const outgoing = { message: { ...message, seq: this.#seq } as Reliable, blobs };
    this.#waiting.push(outgoing);
    return outgoing;
  }

  /** The engine has all up to this number. */
  received(seq: number): void {
    this.#waiting = this.#waiting.filter(({ message }) => message.seq > seq);
  }

  /** Numbers restart for another engine. It asks for answers itself: groups' states stay. */
  restart(): void {
    this.#waiting = this.#waiting.filter(({ message }) => message.type === "group")
      .map(({ message, blobs }, i) => ({ message: { ...message, seq: i + 1 }, blobs }));
    this.#seq = this.#waiting.length;
  }

  /** Whether a task's answer waits. */
  holds(task: string): boolean {
    return this.#waiting.some(({ message }) => "task" in message && message.task === task);
  }

  /** Sends all that waits, in order. */
  sendAll(socket: LineSocket): void {
    for (const outgoing of this.#waiting) sendTo(socket, outgoing);
  }
}

/** Sends a message, its blobs before it. */
export function sendTo(socket: LineSocket, { message, blobs }: Outgoing): void {
  if (message.type === "result") {
    for (const frame of framesOf(message.task, blobs)) socket.send(encode(frame));
  }
  if (socket.isOpen) socket.send(JSON.stringify(message));
}
