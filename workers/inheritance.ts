import { hashJson } from "../engine/mod.ts";
import type { CallOptions, CallResult, Progress } from "./call.ts";
import type { HeldGroup, HeldTask } from "./protocol.ts";
import type { GroupLine } from "./group_line.ts";

/** An operation that the ranks run, or whose answer is on its way. */
export type Running = {
  task: string;
  op: string;
  key: string;
  /** The agent that has it. */
  link: GroupLine;
  /**
   * By the monotonic clock: when it was sent; if an earlier engine sent it, when this one took it
   * over.
   */
  sentAt: number;
  result: PromiseWithResolvers<CallResult>;
  /** The ranks are free again. */
  over: PromiseWithResolvers<void>;
  onProgress: (progress: Progress) => void;
  progressedAt: number;
};

export function running(what: Pick<Running, "task" | "op" | "key" | "link">, now: number): Running {
  const result = Promise.withResolvers<CallResult>();
  result.promise.catch(() => {}); // Its caller may have gone already, by its signal.
  return {
    ...what,
    sentAt: now,
    result,
    over: Promise.withResolvers<void>(),
    onProgress: () => {},
    progressedAt: now,
  };
}

/**
 * A group that an earlier engine of the run started, as its agent's hello tells of it.
 * @internal
 */
export type Inherited = { group: HeldGroup; tasks: HeldTask[] };

/** What makes two calls the same work, whichever engine makes them. */
export type Identity = { op: string; key: string; args_hash: string };

export function argsHash(args: unknown): string {
  return hashJson(args ?? null);
}

/**
 * What earlier engines asked of a group and this one has not asked for yet. A stage that starts again makes the same calls in the
 * same order: each gets what its forerunner got, until one that had not been made.
 */
export class Inheritance {
  #left: { held: HeldTask; running: Running }[] = [];

  add(held: HeldTask, running: Running): void {
    this.#left.push({ held, running });
  }

  /**
   * The oldest that is the same work. What belongs to attempts of this key that have ended is
   * released on the way.
   */
  take(identity: Identity, since: number): Running | null {
    for (const { held, running } of this.#left) {
      if (held.key === identity.key && held.attempt < since) running.link.release(running.task);
    }
    this.#left = this.#left.filter(({ held }) => held.key !== identity.key || held.attempt >= since);
    const found = this.#left.find(({ held }) => isSame(held, identity));
    this.#left = this.#left.filter((left) => left !== found);
    return found?.running ?? null;
  }

  /** Whether a call would receive work that was started before. */
  has(identity: Identity, since: number): boolean {
    return this.#left.some(({ held }) => isSame(held, identity) && held.attempt >= since);
  }

  clear(): void {
    this.#left = [];
  }
}

function isSame({ op, key, args_hash, cancelled }: HeldTask, identity: Identity): boolean {
  return op === identity.op && key === identity.key && args_hash === identity.args_hash && !cancelled;
}

/** From which attempt on an earlier engine's work is this call's. */
export function sinceAttempt({ attempt, since_attempt }: CallOptions): number {
  return since_attempt ?? attempt;
}
