/** Ctrl-C in the first seconds of a command: nothing is recorded yet, so nothing is to be resumed, and that is said. */
import { EXIT } from "./exit.ts";
import { errorScreen } from "./output.ts";

export type BeforeRecordingOptions = {
  /** What is true as long as nothing is recorded. */
  nothing: string;
  note?: (text: string) => void;
  exit?: (code: number) => void;
};

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Until a command records something, SIGINT and SIGTERM end it at once with one sentence and exit code 130. */
export class BeforeRecording {
  readonly #options: Required<BeforeRecordingOptions>;
  #recording = false;
  #asked = false;
  #listening = false;
  readonly #listener = () => this.interrupted();

  constructor(options: BeforeRecordingOptions) {
    const note = (text: string) => void errorScreen().write(`${text}\n`);
    this.#options = { note, exit: (code) => Deno.exit(code), ...options };
  }

  /** A stop was asked for while the record was being written: whoever wrote it says what there is now. */
  get asked(): boolean {
    return this.#asked;
  }

  interrupted(): void {
    const { nothing, note, exit } = this.#options;
    if (this.#recording && !this.#asked) {
      this.#asked = true; // The answer of the store decides what is true.
      return;
    }
    note(this.#recording ? "stopped while the run was being recorded: 'runs' says whether it was" : nothing);
    exit(EXIT.interrupted);
  }

  /** Records. A first stop waits for the end of it. */
  async record<T>(work: () => Promise<T>): Promise<T> {
    this.#recording = true;
    return await work();
  }

  /** Listens to this process's signals while `work` goes on, or until others listen and call `release`. */
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
    if (this.#listening) { for (const name of SIGNALS) Deno.removeSignalListener(name, this.#listener); }
    this.#listening = false;
  }
}
