import type { Duplex } from "node:stream";
import type { Clock } from "../engine/mod.ts";

/**
 * One more, and the one that came first goes: an agent shows its token at once, whoever keeps the
 * door busy does not.
 */
export const STRANGERS_MAX = 64;
/** For the bytes of one request. */
export const STRANGER_MS = 5_000;

/** Sockets of those who have not shown the run's token: few at a time, and none for long. */
export class Strangers {
  readonly #clock: Clock;
  /** In the order they came. */
  readonly #left = new Map<Duplex, AbortController>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(socket: Duplex): void {
    for (const [first] of this.#left) {
      if (this.#left.size < STRANGERS_MAX) break;
      this.#refuse(first);
    }
    const left = new AbortController();
    this.#left.set(socket, left);
    socket.once("close", () => this.know(socket));
    socket.on("error", () => socket.destroy()); // Unheard, it would end the process.
    this.#clock.sleep(STRANGER_MS, left.signal).then(() => this.#refuse(socket), () => {});
  }

  /** It is no stranger any more, or gone. */
  know(socket: Duplex): void {
    this.#left.get(socket)?.abort(new Error("its token was seen, or it is gone"));
    this.#left.delete(socket);
  }

  refuseAll(): void {
    for (const socket of [...this.#left.keys()]) this.#refuse(socket);
  }

  /**
   * Both directions at once: one that is only ended stays open for as long as its other end likes.
   */
  #refuse(socket: Duplex): void {
    this.know(socket);
    socket.destroy();
  }
}
