import type { Operator } from "./operator.ts";
import { unlessAborted } from "./unless_aborted.ts";

/** A caller that waits until one of these workers is free. */
type Waiting = { among: readonly Operator[]; begin: (operator: Operator) => void };

/**
 * Who uses a worker: one caller at a time. A free worker goes to the caller that has waited longest
 * among those that can use it. Classes that call the same workers share one.
 */
export class Turns {
  readonly #busy = new Set<Operator>();
  readonly #waiting: Waiting[] = [];

  /**
   * Runs `work` with the first free worker of `among`, which nobody else uses until it ends. A
   * caller that aborts while it waits leaves the line.
   */
  async take<T>(
    among: readonly Operator[],
    { signal }: { signal?: AbortSignal },
    work: (operator: Operator) => Promise<T>,
  ): Promise<T> {
    const operator = await this.#free(among, signal);
    try {
      return await work(operator);
    } finally {
      this.#release(operator);
    }
  }

  async #free(among: readonly Operator[], signal: AbortSignal | undefined): Promise<Operator> {
    const free = among.find((operator) => !this.#busy.has(operator));
    if (free) {
      this.#busy.add(free);
      return free;
    }
    const turn = Promise.withResolvers<Operator>();
    const waiting = { among, begin: turn.resolve };
    this.#waiting.push(waiting);
    try {
      return await unlessAborted(turn.promise, signal);
    } catch (error) {
      const place = this.#waiting.indexOf(waiting);
      if (place >= 0) this.#waiting.splice(place, 1);
      else this.#release(await turn.promise); // Its turn came in the same moment.
      throw error;
    }
  }

  #release(operator: Operator): void {
    const place = this.#waiting.findIndex(({ among }) => among.includes(operator));
    const [next] = place < 0 ? [] : this.#waiting.splice(place, 1);
    if (next) next.begin(operator);
    else this.#busy.delete(operator);
  }
}
