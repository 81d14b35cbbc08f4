import {
  type Clock,
  type EngineError,
  FencedError,
  InfrastructureError,
} from "../../engine/mod.ts";

type TenureOptions = {
  run: string;
  /** The epoch that the engine appends with. */
  epoch: number;
  clock: Clock;
  /** Whether this engine still owns the run, according to the store. */
  owns: () => Promise<boolean>;
  /** How long to wait before asking a silent store again. */
  owns_retry_ms: number;
  /**
   * The epoch of another engine that has announced itself to the agents since; null if none has.
   */
  supersededBy: () => number | null;
  /** The processes belong to another engine, or may. */
  onLeave: (error: EngineError) => void;
  /**
   * After `onLeave`, if another engine certainly has the run. `epoch`: its epoch, if that is known.
   */
  onFenced: (epoch: number | null) => void;
};

/** How often to ask a silent store whether this engine still owns the run. */
const OWNS_TRIES = 10;

/**
 * The time in which an engine may touch the processes and files of its run. Once it has ended, it
 * never resumes.
 */
export class Tenure {
  #options: TenureOptions;
  #ended: EngineError | null = null;
  #hasLeft = false;

  constructor(options: TenureOptions) {
    this.#options = options;
  }

  /**
   * Why every call fails from now on: the engine stopped, gave up, or lost the run to another
   * engine.
   */
  get ended(): EngineError | null {
    return this.#ended;
  }

  /** The processes belong to another engine, or may. This engine touches none. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Ends the tenure on this engine's own decision. It may still end what it started. */
  end(error: EngineError): void {
    this.#ended = error;
  }

  /** From now on this engine touches no process and no file. */
  leave(): void {
    this.#hasLeft = true;
  }

  /**
   * Whether this engine may touch processes and files: the store says that it still owns the run,
   * and no other engine has announced itself. Otherwise, or if the store does not answer,
   * everything stays as it is.
   */
  async owns(): Promise<boolean> {
    const { run, clock, owns, owns_retry_ms, supersededBy } = this.#options;
    for (let tries = 1; !this.#ended; tries++) {
      try {
        const owned = await owns();
        if (!owned || supersededBy() !== null) this.fenced(supersededBy());
        return !this.#hasLeft;
      } catch (cause) {
        if (tries >= OWNS_TRIES) this.#leaveWith(unknownOwner(run, cause));
        else await clock.sleep(owns_retry_ms);
      }
    }
    return false;
  }

  /**
   * Whether another engine has the run, or may have it because the store does not answer. Asks
   * once, even after the end.
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
    const text =
      `Cannot continue with this run because ${owner} owns it: this engine has ${own_epoch}`;
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
  const text = `Cannot continue with the workers of run '${run}' because the store does not ` +
    `answer whether this engine still owns it: ${why}`;
  return new InfrastructureError(text, { run }, { cause });
}
