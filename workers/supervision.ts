import type { Clock, EngineError } from "../engine/mod.ts";
import type { AgentLink } from "./agent_link.ts";
import type { FailureFacts } from "./failures.ts";

/** Replacements for one and the same failure without committed progress in between. */
const REPLACEMENTS_MAX = 3;
/** For failures that a second time proves: see `confirm` in causes.ts. */
const CONFIRMATIONS_MAX = 1;
/** Replacements for failures of all kinds: those that take turns come to an end, too. */
const DIFFERENT_MAX = 9;
/**
 * Replacements for what somebody did to the processes. Not the work's fault, but not unlimited
 * either.
 */
const UNCOUNTED_MAX = 50;

/**
 * How often something may be replaced, counted by the failure's fingerprint. Committed progress gives the whole budget back: a
 * replacement, a load, a redone batch are none.
 */
export class ReplacementBudget {
  readonly #spent = new Map<string, number>();
  #counted = 0;
  #uncounted = 0;
  #failures = 0;
  readonly max: number;

  constructor(max = REPLACEMENTS_MAX) {
    this.max = max;
  }

  /** Replacements since the last progress. */
  get spent(): number {
    return this.#counted + this.#uncounted;
  }

  /** Since the beginning; progress does not set it back. */
  get failures(): number {
    return this.#failures;
  }

  progressed(): void {
    this.#spent.clear();
    this.#counted = 0;
    this.#uncounted = 0;
  }

  /**
   * Takes one replacement for this failure. False: none is left, or the same failure would only
   * come again.
   */
  spend(error: EngineError): boolean {
    this.#failures += 1;
    const failure = error.facts.failure as FailureFacts | undefined;
    if (failure && hopeless(failure)) return false;
    if (!error.counted) return ++this.#uncounted <= UNCOUNTED_MAX;
    const print = failure?.fingerprint ?? `${error.code}|${error.facts.op ?? ""}`;
    const spent = this.#spent.get(print) ?? 0;
    const max = failure?.action === "confirm" ? Math.min(CONFIRMATIONS_MAX, this.max) : this.max;
    if (spent >= max || this.#counted >= DIFFERENT_MAX) return false;
    this.#spent.set(print, spent + 1);
    this.#counted += 1;
    return true;
  }
}

/**
 * A new process would fail the same way. What is wrong with the work alone leaves the group to
 * other work.
 */
function hopeless({ action, cause }: FailureFacts): boolean {
  return action === "stop" && cause !== "user_code" && cause !== "bad_data";
}

/**
 * An engine that was frozen finds its limits past when it wakes, and what it was sent meanwhile not
 * read yet.
 */
const AWAKE_MS = 250;

/**
 * Sleeps for this long of the time that this process is awake: what it misses at one stretch counts
 * as `AWAKE_MS`.
 */
export async function sleepAwake(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0; left -= AWAKE_MS) await clock.sleep(Math.min(left, AWAKE_MS), signal);
}

/** Why an agent is given up. */
type AgentEnd = { reason: string };

type WatchOptions = {
  clock: Clock;
  /** An agent that sends nothing for this long is lost. */
  silentMs: number;
  /** An agent must say hello within this long of its start. */
  startMs: number;
  /** Resolves with how the agent's process ended. */
  exited: Promise<string>;
  /** Ends the watch without a verdict. */
  signal: AbortSignal;
};

/**
 * Waits until the agent's process ends, falls silent or breaks the protocol. Null if the watch was
 * ended.
 */
export async function watchAgent(link: AgentLink, options: WatchOptions): Promise<AgentEnd | null> {
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const broken = new Promise<AgentEnd>((resolve) => {
    link.onViolation = (reason, fatal) => {
      if (fatal) resolve({ reason: `it broke the protocol: ${reason}` });
    };
  });
  const exited = options.exited.then((how) => ({ reason: how }));
  const ended = new Promise<null>((resolve) => {
    if (signal.aborted) return resolve(null);
    options.signal.addEventListener("abort", () => resolve(null), { once: true });
  });
  try {
    return await Promise.race([exited, broken, ended, silence(link, { ...options, signal })]);
  } finally {
    stop.abort(new Error("the watch is over"));
  }
}

async function silence(link: AgentLink, options: WatchOptions): Promise<AgentEnd | null> {
  const { clock, silentMs, startMs, signal } = options;
  let doubted = false;
  while (!signal.aborted) {
    const limit = link.bootId === null ? startMs : silentMs;
    const left = limit - link.silentMs;
    if (left <= 0 && doubted) {
      return { reason: `it has been silent for ${Math.round(link.silentMs)} ms: the limit is ${limit} ms` };
    }
    try {
      doubted = left <= 0;
      await clock.sleep(doubted ? AWAKE_MS : Math.min(left, silentMs), signal); // Its first hello brings the shorter limit.
    } catch {
      return null; // The watch is over.
    }
  }
  return null;
}
