import { hashJson } from "../../engine/mod.ts";
import type { CallOptions, CallResult, Progress } from "../call.ts";
import type { HeldGroup, HeldTask } from "../line/protocol.ts";
import type { GroupLine } from "./group_line.ts";

/** An operation that the ranks run, or whose answer has not arrived yet. */
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
  sent_ms: number;
  result: PromiseWithResolvers<CallResult>;
  /** The ranks are free again. */
  over: PromiseWithResolvers<void>;
  onProgress: (progress: Progress) => void;
  progressed_ms: number;
};

export function running(what: Pick<Running, "task" | "op" | "key" | "link">, now: number): Running {
  const result = Promise.withResolvers<CallResult>();
  result.promise.catch(() => {}); // Its caller may have left already.
  return {
    ...what,
    sent_ms: now,
    result,
    over: Promise.withResolvers<void>(),
    onProgress: () => {},
    progressed_ms: now,
  };
}

/**
 * A group that an earlier engine of the run started, as its agent's hello describes it.
 * @internal
 */
export type Inherited = { group: HeldGroup; tasks: HeldTask[] };

/** What makes two calls the same work, whichever engine makes them. */
export type Identity = { op: string; key: string; args_hash: string };

export function argsHash(args: unknown): string {
  return hashJson(args ?? null);
}

/**
 * Work that earlier engines requested from a group and this one has not requested yet. A restarted
 * stage makes the same calls in the same order. Each call receives the earlier call's answer, as
 * far as there is one.
 */
export class Inheritance {
  #inherited: { held: HeldTask; running: Running }[] = [];

  add(held: HeldTask, running: Running): void {
    this.#inherited.push({ held, running });
  }

  /** The oldest entry for the same work. Also releases the work of this key's ended attempts. */
  take(identity: Identity, since: number): Running | null {
    for (const { held, running } of this.#inherited) {
      if (held.key === identity.key && held.attempt < since) running.link.release(running.task);
    }
    this.#inherited = this.#inherited.filter(({ held }) =>
      held.key !== identity.key || held.attempt >= since
    );
    const found = this.#inherited.find(({ held }) => isSame(held, identity));
    this.#inherited = this.#inherited.filter((entry) => entry !== found);
    return found?.running ?? null;
  }

  /** Whether a call would receive work that was started before. */
  has(identity: Identity, since: number): boolean {
    return this.#inherited.some(({ held }) => isSame(held, identity) && held.attempt >= since);
  }

  clear(): void {
    this.#inherited = [];
  }
}

function isSame({ op, key, args_hash, cancelled }: HeldTask, identity: Identity): boolean {
  return op === identity.op && key === identity.key && args_hash === identity.args_hash &&
    !cancelled;
}

/** The first attempt whose work by an earlier engine this call may use. */
export function sinceAttempt({ attempt, since_attempt }: CallOptions): number {
  return since_attempt ?? attempt;
}
