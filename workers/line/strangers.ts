import type { Duplex } from "node:stream";
import type { Clock } from "../../engine/mod.ts";

/**
 * When there are more, the oldest is dropped. An agent shows its token immediately, an attacker
 * does not.
 */
export const STRANGERS_MAX = 64;
/** Limit for the bytes of one request. */
export const STRANGER_MS = 5_000;

/** Sockets that have not shown the run's token yet. There are few at a time, none for long. */
export class Strangers {
  readonly #clock: Clock;
  /** In the order they came. */
  readonly #waits = new Map<Duplex, AbortController>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(socket: Duplex): void {
    for (const [first] of this.#waits) {
      if (this.#waits.size < STRANGERS_MAX) break;
      this.#refuse(first);
    }
    const wait = new AbortController();
    this.#waits.set(socket, wait);
    socket.once("close", () => this.know(socket));
    socket.on("error", () => socket.destroy()); // Without a listener it would end the process.
    this.#clock.sleep(STRANGER_MS, wait.signal).then(() => this.#refuse(socket), () => {});
  }

  /** The socket has shown its token, or is gone. */
  know(socket: Duplex): void {
    this.#waits.get(socket)?.abort(new Error("its token was seen, or it is gone"));
    this.#waits.delete(socket);
  }

  refuseAll(): void {
    for (const socket of [...this.#waits.keys()]) this.#refuse(socket);
  }

  /**
   * Closes both directions. A socket that is only ended stays open until the other end closes it.
   */
  #refuse(socket: Duplex): void {
    this.know(socket);
    socket.destroy();
  }
}
