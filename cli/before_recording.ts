/**
 * Ctrl-C in the first seconds of a command: nothing is recorded yet, so there is nothing to
 * resume, and it says so.
 */
import { type Clock, systemClock } from "../engine/mod.ts";
import { EXIT } from "./exit.ts";
import { tell } from "./display/output.ts";
import { ONE_PRESS_MS } from "./stop_requests.ts";

type BeforeRecordingOptions = {
  /** What is true as long as nothing is recorded. */
  nothing: string;
  note?: (text: string) => void;
  exit?: (code: number) => void;
  clock?: Clock;
};

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * Until a command records something, SIGINT and SIGTERM end it immediately with one sentence and
 * exit code 130.
 */
export class BeforeRecording {
  readonly #options: Required<BeforeRecordingOptions>;
  #recording = false;
  #stopRequested = false;
  #requestedMs = -Infinity;
  #listening = false;
  readonly #listener = () => this.interrupted();

  constructor(options: BeforeRecordingOptions) {
    const note = tell;
    this.#options = { note, exit: (code) => Deno.exit(code), clock: systemClock, ...options };
  }

  /**
   * A stop was requested while the record was being written: the writer then says what exists now.
   */
  get stopRequested(): boolean {
    return this.#stopRequested;
  }

  interrupted(): void {
    const { nothing, note, exit, clock } = this.#options;
    const nowMs = clock.monotonic();
    if (nowMs - this.#requestedMs < ONE_PRESS_MS) return;
    if (this.#recording && !this.#stopRequested) {
      this.#stopRequested = true; // Whether the run exists depends on the store's answer.
      this.#requestedMs = nowMs;
      return;
    }
    note(
      this.#recording
        ? "stopped while the run was being recorded: 'runs' shows whether it was"
        : nothing,
    );
    exit(EXIT.interrupted);
  }

  /** Records. A first stop waits for the end of it. */
  async record<T>(work: () => Promise<T>): Promise<T> {
    this.#recording = true;
    return await work();
  }

  /** Listens to this process's signals during `work`, or until others listen and call `release`. */
  async during<T>(work: (before: BeforeRecording) => Promise<T>): Promise<T> {
    for (const name of SIGNALS) Deno.addSignalListener(name, this.#listener);
    this.#listening = true;
    try {
      return await work(this);
    } finally {
      this.release();
    }
  }

  release(): void {
    if (this.#listening) {
      for (const name of SIGNALS) Deno.removeSignalListener(name, this.#listener);
    }
    this.#listening = false;
  }
}
