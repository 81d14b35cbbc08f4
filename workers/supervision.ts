import type { Clock, EngineError } from "../engine/mod.ts";
import type { AgentLink } from "./agent_link.ts";

/** Replacements without a completed operation in between. */
export const REPLACEMENTS_MAX = 3;

/** How often something may be replaced. A completed operation is progress and gives the whole budget back. */
export class ReplacementBudget {
  #spent = 0;
  readonly max: number;

  constructor(max = REPLACEMENTS_MAX) {
    this.max = max;
  }

  get spent(): number {
    return this.#spent;
  }

  progressed(): void {
    this.#spent = 0;
  }

  /** Takes one replacement for this failure. False: none is left, or the same failure would only come again. */
  spend(error: EngineError): boolean {
    if (!error.retryable && HOPELESS.has(String(error.facts.cause))) return false;
    if (this.#spent >= this.max) return false;
    this.#spent += 1;
    return true;
  }
}

/** Causes in a failure's facts that a new process would meet again. */
const HOPELESS = new Set(["import_error"]);

/** Why an agent is given up. */
export type AgentEnd = { reason: string };

export type WatchOptions = {
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

/** Waits until the agent's process ends, falls silent or breaks the protocol. Null if the watch was ended. */
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
  while (!signal.aborted) {
    const limit = link.bootId === null ? startMs : silentMs;
    const left = limit - link.silentMs;
    if (left <= 0) {
      return { reason: `it has been silent for ${Math.round(link.silentMs)} ms: the limit is ${limit} ms` };
    }
    try {
      await clock.sleep(Math.min(left, silentMs), signal); // Its first hello brings the shorter limit.
    } catch {
      return null; // The watch is over.
    }
  }
  return null;
}
