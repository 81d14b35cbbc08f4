import type { Clock } from "../../engine/mod.ts";
import type { AgentLink } from "../line/agent_link.ts";

/** A frozen engine wakes up past its limits, before it has read what it was sent. */
const AWAKE_MS = 250;

/**
 * Sleeps for this much time in which this process is awake. A freeze counts as at most `AWAKE_MS`.
 */
export async function sleepAwake(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  for (let remaining_ms = ms; remaining_ms > 0; remaining_ms -= AWAKE_MS) {
    await clock.sleep(Math.min(remaining_ms, AWAKE_MS), signal);
  }
}

/** Why an agent is given up. */
type AgentEnd = { reason: string };

type WatchOptions = {
  clock: Clock;
  /** An agent that sends nothing for this long is lost. */
  silent_ms: number;
  /** An agent must say hello within this long of its start. */
  start_ms: number;
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
    stop.abort(new Error("supervision has ended"));
  }
}

async function silence(link: AgentLink, options: WatchOptions): Promise<AgentEnd | null> {
  const { clock, silent_ms, start_ms, signal } = options;
  let doubted = false;
  while (!signal.aborted) {
    const limit = link.bootId === null ? start_ms : silent_ms;
    const remaining_ms = limit - link.silentMs;
    if (remaining_ms <= 0 && doubted) {
      return {
        reason: `it has been silent for ${Math.round(link.silentMs)} ms: the limit is ${limit} ms`,
      };
    }
    try {
      doubted = remaining_ms <= 0;
      // After its first hello the shorter limit applies.
      await clock.sleep(doubted ? AWAKE_MS : Math.min(remaining_ms, silent_ms), signal);
    } catch {
      return null; // The watch is over.
    }
  }
  return null;
}
