import type { ServeEvent } from "../../engine/mod.ts";
import type { Home } from "../../runs/mod.ts";
import { afterFailure } from "../after_failure.ts";
import { failureText } from "./failure_text.ts";
import { warnIfUntrained } from "../run_end.ts";

/** Prints what happens to the runs. */
export class ServeTeller {
  readonly #home: Home;
  readonly #note: (text: string) => void;
  readonly #ends = new Set<Promise<void>>();
  #trouble = "";

  constructor(home: Home, note: (text: string) => void) {
    this.#home = home;
    this.#note = note;
  }

  /** Prints each problem once: an unreachable store is tried every second. */
  on(event: ServeEvent): void {
    if (event.type !== "trouble") this.#trouble = "";
    else if (event.reason !== this.#trouble) {
      this.#note(`no run can be taken now: ${this.#trouble = event.reason}`);
    }
    const line = lineOf(event, this.#home);
    if (line) this.#note(line);
    if (event.type !== "ended") return;
    const { run } = event;
    const end = this.#afterEnd(event).catch(({ message }) =>
      this.#tell(run, `no advice found: ${message}`)
    );
    this.#ends.add(end);
    void end.then(() => this.#ends.delete(end));
  }

  /** Resolves once everything is printed. */
  async printed(): Promise<void> {
    await Promise.all(this.#ends);
  }

  /**
   * Prints what `run` prints after a run's end: how to resume or fork a failed run, and whether it
   * trained nothing.
   */
  async #afterEnd({ run, status, error }: ServeEvent & { type: "ended" }): Promise<void> {
    if (status !== "failed" && status !== "done") return;
    const head = await this.#home.store.head(run);
    if (head === null) return;
    if (status === "done") await warnIfUntrained(this.#home, head, (text) => this.#tell(run, text));
    else if (error) this.#tell(run, await afterFailure(this.#home, { head, error }));
  }

  /** Lines of other runs may come between these. */
  #tell(run: string, text: string): void {
    this.#note(withRun(run, text));
  }
}

function lineOf(event: ServeEvent, home: Home): string | null {
  switch (event.type) {
    case "taken":
      if (event.from === null) return `${event.run}  taken`;
      return `${event.run}  taken over from engine ${event.from.pid} on ${event.from.host}`;
    case "ended":
      if (event.status === "failed" && event.error) {
        return `${event.run}  failed: ${failureText(event.error, { run: event.run, home })}`;
      }
      return `${event.run}  ${ENDINGS[event.status]}`;
    case "refused":
      return `${event.run}  skipped: ${event.reason}`;
    case "put_off":
      return `${event.run}  postponed, retrying in ${event.ms / 1000} s: ${event.reason}`;
    case "trouble":
      return null;
  }
}

const ENDINGS = {
  done: "done",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "released",
  fenced: "taken over by another engine; stopped here without touching anything",
};

/** Puts the run's id before each line. */
export function withRun(run: string, text: string): string {
  return text.replace(/^(?=.)/gm, `${run}  `);
}
