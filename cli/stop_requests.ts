import { type Clock, InvalidInputError, systemClock } from "../engine/mod.ts";
import { PREEMPT_GRACE_S } from "../workers/mod.ts";
import type { Screen } from "./display/output.ts";

/** Set by the launcher if it knows the grace better than the configuration does. */
const PREEMPT_GRACE_VARIABLE = "HOLDFAST_PREEMPT_GRACE_S";

/**
 * One press of Ctrl-C arrives several times: from the terminal, and again from `deno task` and
 * `npx`, which forward it within milliseconds.
 */
export const ONE_PRESS_MS = 500;

type StopRequestsOptions = {
  /** Seconds from SIGTERM to the end. Asked when it comes. */
  graceS: () => number;
  /** Receives what happens. `graceS`: the grace period in seconds. */
  note: (text: "draining" | "preempted" | "at_once" | "grace_over", graceS: number) => void;
  /** Ends the process as it is. Called once. */
  exit: () => Promise<unknown>;
  clock?: Clock;
};

/**
 * How a process is asked to stop. SIGINT (Ctrl-C) stops it at the next durable point; a second
 * press stops it immediately. SIGTERM, with which schedulers reclaim a machine, saves the newest policy
 * at the next durable point, and stops it when the grace is over.
 */
export class StopRequests {
  readonly #options: StopRequestsOptions & { clock: Clock };
  readonly #drain = new AbortController();
  readonly #over = new AbortController();
  #preempted = false;
  #pressedMs = -Infinity;
  #exiting: Promise<unknown> | undefined;

  constructor(options: StopRequestsOptions) {
    this.#options = { clock: systemClock, ...options };
  }

  /** Aborted by the first request. */
  get drain(): AbortSignal {
    return this.#drain.signal;
  }

  /** Whether the machine is being reclaimed. */
  readonly preempted = (): boolean => this.#preempted;

  /** Settles when an immediate stop has ended the process, so never; undefined: none was asked. */
  get exiting(): Promise<unknown> | undefined {
    return this.#exiting;
  }

  /** A screen that shows nothing more once an immediate stop ends the workers. */
  quietAtTheEnd(screen: Screen): Screen {
    return { ...screen, write: (text) => this.#exiting ? undefined : screen.write(text) };
  }

  interrupted(): void {
    const { clock, note } = this.#options;
    const nowMs = clock.monotonic();
    if (nowMs - this.#pressedMs < ONE_PRESS_MS || this.#exiting) return;
    this.#pressedMs = nowMs;
    const again = this.#drain.signal.aborted;
    note(again ? "at_once" : "draining", 0);
    if (again) return this.#exit();
    this.#drain.abort();
  }

  /** Only the first counts: schedulers repeat themselves. */
  terminated(): void {
    if (this.#preempted) return;
    this.#preempted = true;
    const { clock, note } = this.#options;
    const graceS = this.#options.graceS();
    note("preempted", graceS);
    this.#drain.abort();
    clock.sleep(graceS * 1000, this.#over.signal).then(() => {
      if (this.#exiting) return;
      note("grace_over", graceS);
      this.#exit();
    }, () => {}); // It has ended in time.
  }

  #exit(): void {
    this.#exiting = this.#options.exit();
  }

  /**
   * Listens to this process's signals; returns a function that ends this and any grace still
   * running.
   */
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

/** The grace in seconds: the environment's, or else the configuration's. */
export function preemptGraceS(
  configured = PREEMPT_GRACE_S,
  text = Deno.env.get(PREEMPT_GRACE_VARIABLE),
): number {
  if (text === undefined || text === "") return configured;
  const seconds = Number(text);
  if (Number.isFinite(seconds) && seconds >= 0) return seconds;
  throw new InvalidInputError(
    `Cannot use ${PREEMPT_GRACE_VARIABLE}='${text}': give seconds, 0 or more`,
    { value: text },
  );
}

/** The grace of a configuration, with or without its defaults. Seconds. */
export function configuredGraceS(config: unknown): number {
  return (config as { workers?: { preempt_grace_s?: number } }).workers?.preempt_grace_s ??
    PREEMPT_GRACE_S;
}

/**
 * The graces of the runs that one process executes. The longest counts: losing the machine earlier
 * costs no recorded work.
 */
export class RunGraces {
  readonly #seconds = new Map<string, number>();

  begun(run: string, config: unknown): void {
    this.#seconds.set(run, configuredGraceS(config));
  }

  ended(run: string): void {
    this.#seconds.delete(run);
  }

  /** Seconds; without a run, the default. */
  longest(): number {
    return this.#seconds.size === 0 ? PREEMPT_GRACE_S : Math.max(...this.#seconds.values());
  }
}
