import { type Clock, type EngineError, FencedError, InfrastructureError } from "../engine/mod.ts";

type TenureOptions = {
  run: string;
  /** The epoch that the engine appends with. */
  epoch: number;
  clock: Clock;
  /** Whether this engine was not superseded, as the store says. */
  owns: () => Promise<boolean>;
  /** After this long a store that did not answer is asked again. */
  ownsRetryMs: number;
  /**
   * The epoch of another engine that has announced itself to the agents since; null if none has.
   */
  supersededBy: () => number | null;
  /** The processes are another engine's, or may be. */
  onLeave: (error: EngineError) => void;
  /**
   * After `onLeave`, if another engine has the run for certain. `epoch`: its epoch, if that is
   * known.
   */
  onFenced: (epoch: number | null) => void;
};

/** A store that does not answer is asked so often whether this engine still owns the run. */
const OWNS_TRIES = 10;

/**
 * The time in which an engine may touch the processes and files of its run. Once it has ended it
 * does not come back.
 */
export class Tenure {
  #options: TenureOptions;
  #ended: EngineError | null = null;
  #left = false;

  constructor(options: TenureOptions) {
    this.#options = options;
  }

  /** Why every call fails from now on: stopped, given up, or the run is another engine's. */
  get ended(): EngineError | null {
    return this.#ended;
  }

  /** The processes are another engine's, or may be: this one touches none. */
  get left(): boolean {
    return this.#left;
  }

  /** By this engine's own will: what it started is still its own to end. */
  end(error: EngineError): void {
    this.#ended = error;
  }

  /** No process and no file is touched any more. */
  leave(): void {
    this.#left = true;
  }

  /**
   * Whether this engine may touch processes and files: the store says that it was not superseded, and no other engine has
   * announced itself since. If not, or if it cannot be known, everything is left as it is.
   */
  async owns(): Promise<boolean> {
    const { run, clock, owns, ownsRetryMs, supersededBy } = this.#options;
    for (let tries = 1; !this.#ended; tries++) {
      try {
        const owned = await owns();
        if (!owned || supersededBy() !== null) this.fenced(supersededBy());
        return !this.#left;
      } catch (cause) {
        if (tries >= OWNS_TRIES) this.#leaveWith(unknownOwner(run, cause));
        else await clock.sleep(ownsRetryMs);
      }
    }
    return false;
  }

  /**
   * Whether another engine has the run, or may have it: the store does not say. Asks once, and also
   * after the end.
   */
  async isLost(): Promise<boolean> {
    const owned = await this.#options.owns().catch(() => false);
    return !owned || this.#options.supersededBy() !== null;
  }

  /** Another engine owns the run. */
  fenced(epoch: number | null): void {
    if (this.#ended) return;
    const own_epoch = this.#options.epoch;
    const owner = epoch === null ? "another engine" : `epoch ${epoch}`;
    const text = `Cannot continue with this run because ${owner} owns it: this engine has ${own_epoch}`;
    this.#leaveWith(new FencedError(text, { epoch, own_epoch }));
    this.#options.onFenced(epoch);
  }

  #leaveWith(error: EngineError): void {
    this.end(error);
    this.leave();
    this.#options.onLeave(error);
  }
}

function unknownOwner(run: string, cause: unknown): InfrastructureError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const text =
    `Cannot continue with the workers of run '${run}' because the store does not say whether this engine still owns it: ${why}`;
  return new InfrastructureError(text, { run }, { cause });
}
