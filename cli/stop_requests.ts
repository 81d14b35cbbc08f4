import { type Clock, InvalidInputError, systemClock } from "../engine/mod.ts";
import { PREEMPT_GRACE_S } from "../workers/mod.ts";

/** Set by whatever starts us where it knows better than the configuration. */
export const PREEMPT_GRACE_VARIABLE = "HOLDFAST_PREEMPT_GRACE_S";

export type StopRequestsOptions = {
  /** Seconds from SIGTERM to the end. */
  graceS: number;
  /** Told what is going on, in words. */
  note: (text: "draining" | "preempted" | "at_once" | "grace_over") => void;
  /** Ends the process as it is. */
  exit: () => void;
  clock?: Clock;
};

/**
 * How a process is asked to stop. SIGINT, which is Ctrl-C: at the next durable point; twice: at once. SIGTERM, which is how a
 * scheduler takes a machine away: at the next durable point with the newest policy saved, and at once when the grace is over.
 */
export class StopRequests {
  readonly #options: StopRequestsOptions & { clock: Clock };
  readonly #drain = new AbortController();
  readonly #over = new AbortController();
  #preempted = false;

  constructor(options: StopRequestsOptions) {
    this.#options = { clock: systemClock, ...options };
  }

  /** Aborted by the first request. */
  get drain(): AbortSignal {
    return this.#drain.signal;
  }

  /** Whether the machine is about to go. */
  readonly preempted = (): boolean => this.#preempted;

  interrupted(): void {
    const again = this.#drain.signal.aborted;
    this.#options.note(again ? "at_once" : "draining");
    if (again) return this.#options.exit();
    this.#drain.abort();
  }

  /** Once counts: schedulers repeat themselves. */
  terminated(): void {
    if (this.#preempted) return;
    this.#preempted = true;
    const { clock, graceS, note, exit } = this.#options;
    note("preempted");
    this.#drain.abort();
    clock.sleep(graceS * 1000, this.#over.signal).then(() => {
      note("grace_over");
      exit();
    }, () => {}); // It has ended in time.
  }

  /** Listens to this process's signals; returns what ends that, and any grace that still runs. */
  listen(): () => void {
    const listeners = { SIGINT: () => this.interrupted(), SIGTERM: () => this.terminated() };
    const names = ["SIGINT", "SIGTERM"] as const;
    for (const name of names) Deno.addSignalListener(name, listeners[name]);
    return () => {
      for (const name of names) Deno.removeSignalListener(name, listeners[name]);
      this.#over.abort(new Error("stopped"));
    };
  }
}

/** The grace in seconds: the environment's word, else the configuration's. */
export function preemptGraceS(configured = PREEMPT_GRACE_S, given = Deno.env.get(PREEMPT_GRACE_VARIABLE)): number {
  if (given === undefined || given === "") return configured;
  const seconds = Number(given);
  if (Number.isFinite(seconds) && seconds >= 0) return seconds;
  throw new InvalidInputError(`Cannot use ${PREEMPT_GRACE_VARIABLE}='${given}': give seconds, 0 or more`, { given });
}
