/** Counted places on worker groups. A request gets everything at once, or waits. */
import { InvalidInputError } from "../errors.ts";

/** How many slots of each name are requested together. */
export type Needs = Readonly<Record<string, number>>;
export type Release = () => void;

type Request = { needs: Needs; passed: number; grant(): void };

/** Bound on graph stages that run in the engine at once; they hold no slot of a worker group. */
const ENGINE_IN_FLIGHT = 64;
/**
 * A request that later ones have passed this often is not passed again, so large ones do not
 * starve.
 */
const PASSED_MAX = 8;

/**
 * First come, first served, but requests that fit may pass one that does not, at most `PASSED_MAX`
 * times.
 */
export class Slots {
  readonly #free = new Map<string, number>();
  readonly #waiting: Request[] = [];

  /** `sizes`: slots by name; a name that is not listed has one. */
  constructor(readonly sizes: Readonly<Record<string, number>> = {}) {}

  size(name: string): number {
    return this.sizes[name] ?? (name === "engine" ? ENGINE_IN_FLIGHT : 1);
  }

  /**
   * Waits for all of `needs`. The caller must release them, once.
   * @throws {InvalidInputError} If there can never be that many.
   */
  reserve(needs: Needs): Promise<Release> | Release {
    for (const [name, count] of Object.entries(needs)) {
      if (count > this.size(name)) {
        throw new InvalidInputError(
          `Cannot reserve ${count} slots of '${name}' because there are ${this.size(name)}`,
          {
            name,
            count,
          },
        );
      }
    }
    const release = () => this.#release(needs);
    if (this.#fits(needs) && this.#fits(needs, keptFor(this.#waiting))) {
      this.#take(needs, this.#waiting);
      return release;
    }
    return new Promise((resolve) =>
      this.#waiting.push({ needs, passed: 0, grant: () => resolve(release) })
    );
  }

  /** Looks through the waiting requests only while some of the freed slots remain. */
  #release(needs: Needs): void {
    const freed = Object.keys(needs);
    for (const name of freed) this.#free.set(name, this.#available(name) + needs[name]!);
    const granted: Request[] = [];
    const kept = new Map<string, number>();
    let i = 0;
    while (
      i < this.#waiting.length &&
      freed.some((name) => this.#available(name) > (kept.get(name) ?? 0))
    ) {
      const request = this.#waiting[i]!;
      if (this.#fits(request.needs, kept)) {
        this.#take(request.needs, this.#waiting.slice(0, i));
        granted.push(...this.#waiting.splice(i, 1));
        continue;
      }
      keep(kept, request);
      i++;
    }
    for (const request of granted) request.grant();
  }

  #available(name: string): number {
    return this.#free.get(name) ?? this.size(name);
  }

  #fits(needs: Needs, kept?: ReadonlyMap<string, number>): boolean {
    return Object.entries(needs).every(([name, count]) =>
      count <= this.#available(name) - (kept?.get(name) ?? 0)
    );
  }

  #take(needs: Needs, passing: readonly Request[]): void {
    for (const [name, count] of Object.entries(needs)) {
      this.#free.set(name, this.#available(name) - count);
    }
    for (const other of passing) {
      if (Object.keys(needs).some((name) => (other.needs[name] ?? 0) > 0)) other.passed++;
    }
  }
}

/** What is kept free for requests that were passed too often. */
function keptFor(requests: readonly Request[]): Map<string, number> {
  const kept = new Map<string, number>();
  for (const request of requests) keep(kept, request);
  return kept;
}

function keep(kept: Map<string, number>, { needs, passed }: Request): void {
  if (passed < PASSED_MAX) return;
  for (const [name, count] of Object.entries(needs)) kept.set(name, (kept.get(name) ?? 0) + count);
}
