import { setImmediate } from "node:timers";

/**
 * Time is passed in, and so are the turns of the event loop: tests control the first, a simulator
 * the order of the second.
 */
export interface Clock {
  /** Milliseconds since 1970; may jump. */
  now(): number;
  /** Milliseconds since some fixed moment of this process; never goes back. */
  monotonic(): number;
  /** Rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /**
   * Settles in the next turn of the event loop, when everything that can settle by itself has
   * settled.
   */
  turn(): Promise<void>;
  /** Settles even later, after turns that were due. About a millisecond of real time. */
  pause(): Promise<void>;
}

/** Turns of the real event loop. */
const realTurns = {
  turn: () => new Promise<void>((resolve) => void setImmediate(resolve)),
  pause: () => new Promise<void>((resolve) => void setTimeout(resolve, 0)),
};

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep(ms, signal) {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        reject(signal!.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        resolve();
      }, ms);
      signal?.addEventListener("abort", stop, { once: true });
    });
  },
  ...realTurns,
};

type Sleeper = { due: number; wake(): void };

/** A clock that moves only when it is advanced. For tests of code that waits. */
export class ManualClock implements Clock {
  readonly turn: Clock["turn"] = realTurns.turn;
  readonly pause: Clock["pause"] = realTurns.pause;
  #started: number;
  #now: number;
  #jumped = 0;
  #sleepers: Sleeper[] = [];
  #watchers: { count: number; resolve(): void }[] = [];

  /** Starts at `now`, in milliseconds since 1970. */
  constructor(now = 1_700_000_000_000) {
    this.#started = now;
    this.#now = now;
  }

  now(): number {
    return this.#now + this.#jumped;
  }

  /** Moves the wall clock, forward or back; sleeps and the monotonic clock do not notice. */
  jump(ms: number): void {
    this.#jumped += ms;
  }

  monotonic(): number {
    return this.#now - this.#started;
  }

  /** How many sleeps are waiting. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        reject(signal!.reason);
      };
      const wake = () => {
        signal?.removeEventListener("abort", stop);
        resolve();
      };
      const sleeper = { due: this.#now + Math.max(0, ms), wake };
      signal?.addEventListener("abort", stop, { once: true });
      this.#sleepers.push(sleeper);
      this.#tellWatchers();
    });
  }

  /** Settles once at least `count` sleeps wait: the moment from which advancing is safe. */
  untilSleeping(count = 1): Promise<void> {
    return new Promise((resolve) => {
      this.#watchers.push({ count, resolve });
      this.#tellWatchers();
    });
  }

  /**
   * Moves time on, stopping at every sleep that falls due, in order, and letting the woken code run
   * there: a loop of one-second sleeps advanced by ten seconds turns ten times.
   */
  async advance(ms: number): Promise<void> {
    const target = this.#now + ms;
    for (let next = this.#next(target); next; next = this.#next(target)) {
      this.#now = Math.max(this.#now, next.due);
      this.#sleepers.splice(this.#sleepers.indexOf(next), 1);
      next.wake();
      await this.pause();
    }
    this.#now = Math.max(this.#now, target);
    await this.pause();
  }

  /** The sleep that is due first; if equal, the one that started first. */
  #next(target: number): Sleeper | undefined {
    let first: Sleeper | undefined;
    for (const sleeper of this.#sleepers) {
      if (sleeper.due <= target && (!first || sleeper.due < first.due)) first = sleeper;
    }
    return first;
  }

  #tellWatchers(): void {
    const ready = this.#watchers.filter((watcher) => watcher.count <= this.#sleepers.length);
    this.#watchers = this.#watchers.filter((watcher) => !ready.includes(watcher));
    for (const watcher of ready) watcher.resolve();
  }
}
