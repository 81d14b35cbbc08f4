import type { Clock, EngineError } from "../../engine/mod.ts";
import type { CallOptions, CallResult } from "../call.ts";
import type { RankProgress } from "../failures/hangs.ts";
import {
  type Identity,
  Inheritance,
  type Running,
  running as opened,
  sinceAttempt,
} from "./inheritance.ts";
import { type Limited, limitSilence, limitTime } from "./operation_limits.ts";
import { operationPhase } from "../roles/table.ts";
import { type Arguments, outputsOf } from "../line/payload.ts";
import type { AgentMessage, HeldTask, RankState } from "../line/protocol.ts";
import type { GroupLine } from "./group_line.ts";
import type { GroupSpec } from "./group_spec.ts";
import { unlessAborted } from "../unless_aborted.ts";

/** The current state of the tasks' group. */
type Gang = {
  readonly spec: Pick<GroupSpec, "group" | "role" | "no_progress_ms" | "timeouts">;
  readonly generation: number;
  readonly ranks: readonly RankState[];
};

type OpenTasksOptions = {
  run: string;
  /** The engine's. Task names contain it, so no two engines of a run use the same name. */
  epoch: number;
  clock: Clock;
  /** Where the agent puts the stacks of ranks that hang. */
  log_dir: string;
  /** Whether this engine still owns the run. Checked before ranks are asked to stop. */
  owns: () => Promise<boolean>;
  /** The running operation exceeded one of its limits. */
  onHung: (error: EngineError) => void;
  /** An operation ended, with or without success. */
  onOver: (running: Running) => void;
};

/**
 * After this long, ranks that do not release a cancelled operation end their group. The agent's own
 * limit is 5 s.
 */
const CANCEL_MS = 8_000;

/**
 * What a group's ranks were requested and have not answered yet: the running operation with its
 * limits, and the work of earlier engines.
 */
export class OpenTasks {
  #gang: Gang;
  #options: OpenTasksOptions;
  #running: Running | null = null;
  /** The ranks' progress in the running operation. */
  #progress = new Map<number, RankProgress>();
  /** Tasks whose answers are still to come, by name. */
  #open = new Map<string, Running>();
  #inheritance = new Inheritance();
  #sent = 0;

  constructor(gang: Gang, options: OpenTasksOptions) {
    this.#gang = gang;
    this.#options = options;
  }

  /** What the ranks are busy with; null if they are free. */
  get running(): Running | null {
    return this.#running;
  }

  find(task: string): Running | undefined {
    return this.#open.get(task);
  }

  /** Continues what earlier engines requested of this generation. */
  inherit(tasks: HeldTask[], link: GroupLine): void {
    for (const held of tasks) {
      const running = opened({ ...held, link }, this.#options.clock.monotonic());
      this.#open.set(running.task, running);
      this.#inheritance.add(held, running);
      if (held.state === "running") this.#running = running;
      else running.over.resolve();
    }
    if (this.#running) this.#limitInherited(this.#running);
  }

  /**
   * Perhaps nobody requests this work, but later work waits for it. So the group's own limits
   * apply.
   */
  #limitInherited(running: Running): void {
    this.#limit(running, {}, untilOver(running));
  }

  /** The caller's limits; the group's own where the caller sets none. */
  #limit(
    running: Running,
    { timeout_ms, no_progress_ms }: Pick<CallOptions, "timeout_ms" | "no_progress_ms">,
    signal: AbortSignal,
  ): void {
    const { spec } = this.#gang;
    const time = timeout_ms === undefined
      ? spec.timeouts?.[running.op]
      : { limit_ms: timeout_ms, setting: undefined };
    if (time) {
      const { limit_ms, setting } = time;
      limitTime(running, { ...this.#limited(limit_ms, signal), since: "started", setting });
    }
    const silent_ms = no_progress_ms ?? spec.no_progress_ms;
    if (silent_ms !== undefined) limitSilence(running, this.#limited(silent_ms, signal));
  }

  /** Whether `take` would return work. */
  holds(identity: Identity, options: CallOptions): boolean {
    return this.#inheritance.has(identity, sinceAttempt(options));
  }

  /** The same work, started by an earlier engine; null if there is none. */
  take(identity: Identity, options: CallOptions): Running | null {
    const inherited = this.#inheritance.take(identity, sinceAttempt(options));
    if (!inherited) return null;
    inherited.progressed_ms = this.#options.clock.monotonic();
    inherited.onProgress = options.onProgress ?? inherited.onProgress;
    return inherited;
  }

  /** Sends an operation to free ranks. */
  send({ op, key, args_hash }: Identity, { args, link, options }: Sending): Running {
    const { spec: { group, role }, generation } = this.#gang;
    this.#sent += 1;
    const { attempt } = options;
    const task = `${group}/g${generation}/t${this.#options.epoch}.${this.#sent}`;
    const running = opened({ task, op, key, link }, this.#options.clock.monotonic());
    running.onProgress = options.onProgress ?? running.onProgress;
    const message = {
      type: "task" as const,
      task,
      group,
      generation,
      key,
      attempt,
      op,
      args,
      args_hash,
    };
    link.send(message, operationPhase(role, op));
    this.#open.set(task, running);
    this.#running = running;
    this.#progress.clear();
    return running;
  }

  /** The answer, within the caller's limits. If the caller leaves, the ranks are notified. */
  async answer(running: Running, options: CallOptions): Promise<CallResult> {
    keepUntilRecorded(running, options);
    const over = new AbortController();
    this.#limit(running, options, over.signal);
    try {
      return await unlessAborted(running.result.promise, options.signal);
    } finally {
      over.abort(new Error("the operation is over"));
      if (options.signal?.aborted && this.#running === running) this.#cancel(running);
    }
  }

  /** Notifies the ranks; if they keep the operation, they count as hung. */
  #cancel(running: Running): void {
    const { link, task } = running;
    const tell = () => this.#running === running && link.send({ type: "cancel", task });
    this.#options.owns().then((owned) => owned && tell());
    limitTime(running, { ...this.#limited(CANCEL_MS, untilOver(running)), since: "cancelled" });
  }

  #limited(limit_ms: number, signal: AbortSignal): Limited {
    const { run, log_dir, clock, onHung } = this.#options;
    const place = { run, group: this.#gang.spec.group, generation: this.#gang.generation, log_dir };
    const hung = (running: Running, error: EngineError) =>
      void (this.#running === running && onHung(error));
    const hang = () => ({ progress: [...this.#progress.values()], ranks: this.#gang.ranks });
    return { clock, place, limit_ms, signal, hung, hang };
  }

  progressed(message: Extract<AgentMessage, { type: "progress" }>): void {
    if (this.#running?.task !== message.task) return;
    const at_ms = this.#running.progressed_ms = this.#options.clock.monotonic();
    const { rank, phase, done, total, metrics } = message;
    this.#progress.set(rank, { rank, phase, done, at_ms });
    this.#running.onProgress({ rank, phase, done, total, metrics });
  }

  resolve(running: Running, message: Extract<AgentMessage, { type: "result" }>): void {
    try {
      const { task } = message;
      const blobs = running.link.blobs.take(task, message.blobs);
      running.result.resolve({
        ...outputsOf(message.outputs, { task, blobs }),
        generation: this.#gang.generation,
      });
    } catch (error) {
      running.result.reject(error);
    }
    this.#free(running);
  }

  reject(running: Running, error: EngineError): void {
    running.result.reject(error);
    this.#free(running);
  }

  /**
   * The ranks are gone. This also ends the work of earlier engines, which belonged to this
   * generation.
   */
  close(error: EngineError): void {
    this.#inheritance.clear();
    for (const running of [...this.#open.values()]) {
      this.reject(running, error);
      running.link.release(running.task);
    }
  }

  #free(running: Running): void {
    running.link.forget(running.task);
    this.#open.delete(running.task);
    if (this.#running === running) this.#running = null;
    running.over.resolve();
    this.#options.onOver(running);
  }
}

/** What is sent with an operation. `link`: to the agent that runs the ranks. */
type Sending = { args: Arguments; link: GroupLine; options: CallOptions };

function untilOver(running: Running): AbortSignal {
  const over = new AbortController();
  running.over.promise.then(() => over.abort(new Error("the operation is over")));
  return over.signal;
}

/**
 * The answer stays with the agent until the end of its work is durable: until then another engine
 * may request it.
 */
function keepUntilRecorded({ link, task, result }: Running, options: CallOptions): void {
  const kept = options.recorded ? options.recorded() : result.promise.then(() => {}, () => {});
  kept.then(() => link.release(task));
}
