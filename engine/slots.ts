/** Counted places on worker groups. Whoever asked first is served first. */

export type Release = () => void;

/** Bound on graph stages that run in the engine at once; they hold no slot of a worker group. */
const ENGINE_IN_FLIGHT = 64;

export class Slots {
  readonly #free = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();

  /** `sizes`: slots by name; a name that is not listed has one. */
  constructor(readonly sizes: Readonly<Record<string, number>> = {}) {}

  size(name: string): number {
    return this.sizes[name] ?? (name === "engine" ? ENGINE_IN_FLIGHT : 1);
  }

  /** Waits for a place. The caller must release it, once. */
  acquire(name: string): Promise<Release> | Release {
    const free = this.#free.get(name) ?? this.size(name);
    if (free > 0) {
      this.#free.set(name, free - 1);
      return () => this.#release(name);
    }
    return new Promise((resolve) => {
      const queue = this.#waiting.get(name) ?? [];
      queue.push(() => resolve(() => this.#release(name)));
      this.#waiting.set(name, queue);
    });
  }

  #release(name: string): void {
    const next = this.#waiting.get(name)?.shift();
    if (next) next();
    else this.#free.set(name, (this.#free.get(name) ?? 0) + 1);
  }
}
