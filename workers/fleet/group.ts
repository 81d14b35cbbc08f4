import {
  type ArtifactStore,
  type Clock,
  type EngineError,
  FencedError,
  hashJson,
  WorkerLostError,
} from "../../engine/mod.ts";
import type { CallOptions, CallResult } from "../call.ts";
import {
  failureError,
  type FailureFacts,
  type FailurePlace,
  leavesGroupWhole,
} from "../failures/failures.ts";
import { argsHash, type Inherited, type Running } from "./inheritance.ts";
import { OpenTasks } from "./open_tasks.ts";
import { argumentsOf } from "../line/payload.ts";
import type { AgentMessage, GroupState, RankState } from "../line/protocol.ts";
import type { GroupLine } from "./group_line.ts";
import type { GroupEvent } from "./group_event.ts";
import type { GroupSpec } from "./group_spec.ts";
import { CallQueue } from "./call_queue.ts";
import { ReplacementBudget } from "../failures/replacement_budget.ts";
import { unlessAborted } from "../unless_aborted.ts";

type GroupOptions = {
  run: string;
  /** The engine's. Task names contain it, so no two engines of a run use the same name. */
  epoch: number;
  /** The last generation that had this name. */
  after?: number;
  clock: Clock;
  log_dir: string;
  /** Environment of the ranks. The group's own `env` overrides it. */
  env: Record<string, string>;
  /** For arguments that are too long for their message. */
  artifacts: Pick<ArtifactStore, "put">;
  onEvent: (event: GroupEvent) => void;
  /** The specification has changed: attaches the group for its next generation. */
  onMoved: () => void;
  /** Whether this engine still owns the run. Checked before ranks are ended or cancelled. */
  owns: () => Promise<boolean>;
};

const START_TIMEOUT_MS = 300_000;
/** The time that ranks get to end by themselves when their group is dismissed. */
export const DISMISS_GRACE_MS = 2_000;

/**
 * A gang of Python processes with one job, as the engine sees it. Runs one operation at a time;
 * replaces itself when a rank dies or hangs, as often as its budget of replacements allows, and
 * then fails permanently with the root cause.
 */
export class WorkerGroup {
  #spec: GroupSpec;
  #options: GroupOptions;
  #line: GroupLine | null = null;
  #generation: number;
  #state: GroupState["state"] = "starting";
  #ranks: RankState[] = [];
  #info: Record<string, unknown> = {};
  #gate = closedGate();
  #queue = new CallQueue();
  #tasks: OpenTasks;
  #budget = new ReplacementBudget();
  #failure: EngineError | null = null;
  /**
   * The generation that was given up last. The agent may report it for both the task and the group.
   */
  #abandoned = -1;

  /** Starts once a line is attached. */
  constructor(spec: GroupSpec, options: GroupOptions) {
    [this.#spec, this.#options] = [spec, options];
    this.#generation = options.after ?? 0;
    this.#tasks = new OpenTasks(this, {
      ...options,
      onHung: (error) => this.#lost(error),
      onOver: ({ op, key, sent_ms }) => {
        const { group } = this.spec;
        const ended_ms = options.clock.monotonic();
        options.onEvent({ type: "operation", group, op, key, sent_ms, ended_ms });
      },
    });
  }

  /** The identity with which it was started. */
  get spec(): GroupSpec {
    return this.#spec;
  }

  /** The next generation starts with this one. */
  set spec(spec: GroupSpec) {
    this.#spec = spec;
  }

  /**
   * Counts the gangs that had this group's name, from 1. A new gang holds nothing that an earlier
   * one had in memory.
   */
  get generation(): number {
    return this.#generation;
  }

  /** Its state, as its agent reports it. */
  get state(): GroupState["state"] {
    return this.#state;
  }

  /** Each rank's process, in their order. */
  get ranks(): readonly RankState[] {
    return this.#ranks;
  }

  /** Why the group was given up. */
  get failure(): EngineError | null {
    return this.#failure;
  }

  /** Settles when all ranks are ready. Returns what rank 0 reports (device, packages, repeats). */
  async ready(
    signal?: AbortSignal,
  ): Promise<{ generation: number; info: Record<string, unknown> }> {
    await unlessAborted(this.#gate.promise, signal);
    return { generation: this.#generation, info: this.#info };
  }

  /**
   * Runs `op` on all ranks, after the calls before it. Waits for the group to be ready, through
   * replacements.
   * @throws {EngineError} With the root cause; `worker_lost` if the ranks were lost during the
   * work.
   */
  async call(op: string, args: unknown, options: CallOptions): Promise<CallResult> {
    if (this.#failure) throw this.#failure;
    const turn = this.#queue.join({ op, group: this.spec.group });
    let running: Running | null = null;
    try {
      await unlessAborted(turn.begins, options.signal);
      await options.durable?.();
      await unlessAborted(this.#gate.promise, options.signal);
      running = await this.#begin(op, args, options);
      this.#budget.progressOnceRecorded(running.result.promise, options.recorded?.());
      return await this.#tasks.answer(running, options);
    } finally {
      turn.end(running?.over.promise);
    }
  }

  /** Whether `call` would continue an earlier engine's work. */
  holds(op: string, args: unknown, options: CallOptions): boolean {
    return this.#tasks.holds({ op, key: options.key, args_hash: argsHash(args) }, options);
  }

  /**
   * Adopts what an earlier engine started on this agent if it is the same group, else starts a new
   * generation.
   */
  attach(line: GroupLine, inherited: Inherited | null = null): void {
    if (this.#state === "failed" || this.#state === "stopped") return;
    this.#line = line;
    if (inherited && this.#isThis(inherited)) this.#adopt(inherited);
    else this.#start();
  }

  #isThis({ group: { state, spec_hash }, tasks }: Inherited): boolean {
    const alive = state === "starting" || state === "ready";
    return alive && spec_hash === this.#specHash() &&
      tasks.filter((task) => task.state === "running").length <= 1;
  }

  #adopt({ group, tasks }: Inherited): void {
    this.#generation = group.generation;
    this.#state = group.state;
    this.#ranks = group.ranks;
    this.#info = group.info;
    this.#tasks.inherit(tasks, this.#line!);
    if (group.state === "ready") this.#gate.resolve();
    this.#emitState();
  }

  /**
   * The agent is lost, and every rank with it. A new agent's `attach` continues, if the budget
   * allows one.
   */
  agentLost(error: EngineError): void {
    if (this.#state === "failed" || this.#state === "stopped") return;
    this.#line = null;
    this.#lost(error);
  }

  /** Ends the group permanently. Its processes end when the agent shuts down. */
  end(error: EngineError): void {
    if (this.#state === "failed" || this.#state === "stopped") return;
    this.#tasks.close(error);
    this.#giveUp(error, error instanceof FencedError ? "failed" : "stopped");
  }

  /** Ends the group and its processes permanently. */
  dismiss(error: EngineError): void {
    const { spec: { group }, generation } = this;
    this.#line?.send({ type: "stop_group", group, generation, grace_ms: DISMISS_GRACE_MS });
    this.end(error);
  }

  /** A message of the agent that concerns this group or its running task. */
  receive(message: AgentMessage): void {
    switch (message.type) {
      case "group":
        return this.#groupChanged(message);
      case "progress":
        return this.#tasks.progressed(message);
      case "result":
        return this.#finished(message);
      case "error":
        return this.#failed(message);
    }
  }

  /** Updates the rank states from the last heartbeat. */
  refresh(state: GroupState): void {
    if (state.generation === this.#generation && this.#state !== "failed") {
      this.#ranks = state.ranks;
    }
  }

  #start(): void {
    const { group, role, ranks, python, module, spec, start_timeout_ms } = this.spec;
    this.#generation += 1;
    this.#state = "starting";
    this.#ranks = [];
    const message = {
      type: "start_group" as const,
      group,
      role,
      ranks,
      python,
      module,
      spec,
      generation: this.#generation,
      spec_hash: this.#specHash(),
      env: this.#env(),
      interface: this.#line?.interface ?? null,
      log_dir: this.#options.log_dir,
      start_timeout_ms: start_timeout_ms ?? START_TIMEOUT_MS,
    };
    try {
      this.#line?.send(message);
    } catch (error) { // It is too large, and would be again.
      return this.#giveUp(error as EngineError, "failed");
    }
    this.#emitState();
  }

  #env(): Record<string, string> {
    return { ...this.#options.env, ...this.spec.env };
  }

  /**
   * Hash of everything that defines the group. This engine can adopt another engine's group with
   * the same hash.
   */
  #specHash(): string {
    const { role, ranks, python, module, spec, host_env } = this.spec;
    const { interface: named, parts } = this.#line ?? {};
    const place = { interface: named, parts, host_env };
    return hashJson({ role, ranks, python, module, spec, env: this.#env(), ...place });
  }

  /** Continues what an earlier engine started, or sends the operation once the ranks are free. */
  async #begin(op: string, args: unknown, options: CallOptions): Promise<Running> {
    const identity = { op, key: options.key, args_hash: argsHash(args) };
    const inherited = this.#tasks.take(identity, options);
    if (inherited) return inherited;
    const resolved = await argumentsOf(args, {
      op,
      group: this.spec.group,
      artifacts: this.#options.artifacts,
    });
    // The running work is an earlier engine's. A later call may request it.
    while (this.#tasks.running) {
      await unlessAborted(this.#tasks.running.over.promise, options.signal);
      await unlessAborted(this.#gate.promise, options.signal);
    }
    if (this.#failure) throw this.#failure;
    return this.#tasks.send(identity, { args: resolved, link: this.#line!, options });
  }

  #groupChanged(message: Extract<AgentMessage, { type: "group" }>): void {
    if (
      message.generation !== this.#generation || this.#state === "failed" ||
      this.#state === "stopped"
    ) return;
    this.#ranks = message.ranks;
    if (message.state === "ready") {
      this.#state = "ready";
      this.#info = message.info;
      this.#emitState();
      this.#gate.resolve();
    } else if (message.state === "failed" || message.state === "stopped") {
      this.#lost(this.#groupError(message));
    }
  }

  #groupError(message: Extract<AgentMessage, { type: "group" }>): EngineError {
    if (message.failures.length > 0) {
      return failureError(message.failures, this.#place(this.#tasks.running?.op));
    }
    const { group } = this.spec;
    return new WorkerLostError(
      `Cannot continue with ${group} because its agent says that it is ${message.state}`,
      { group },
    );
  }

  /** Where a failure of this generation happened. */
  #place(op: string | undefined): FailurePlace {
    const { group, ranks } = this.spec;
    return { run: this.#options.run, group, ranks, generation: this.#generation, op };
  }

  #finished(message: Extract<AgentMessage, { type: "result" }>): void {
    const running = this.#tasks.find(message.task);
    if (running) this.#tasks.resolve(running, message);
    else this.#line?.release(message.task);
  }

  #failed(message: Extract<AgentMessage, { type: "error" }>): void {
    const running = this.#tasks.find(message.task);
    if (!running) return this.#line?.release(message.task);
    const error = failureError(message.failures, this.#place(running.op));
    if (running === this.#tasks.running && !leavesGroupWhole(message.failures, this.spec.ranks)) {
      return this.#lost(error);
    }
    this.#tasks.reject(running, error);
  }

  /** Ends this generation and its operation. A new one starts if the budget allows it. */
  #lost(error: EngineError): void {
    if (this.#abandoned === this.#generation) return; // The next one is already starting.
    this.#abandoned = this.#generation;
    if (this.#state === "ready") this.#gate = closedGate();
    this.#state = "starting";
    this.#tasks.close(error);
    if (!this.#budget.spend(error)) {
      return this.#giveUp(this.#budget.final(error, this.spec.group), "failed");
    }
    const { spec } = this;
    try {
      this.#leaveOut(error);
    } catch (refusal) {
      return this.#giveUp(refusal as EngineError, "failed");
    }
    const start = this.spec === spec ? () => this.#start() : this.#options.onMoved;
    const { group } = this.spec;
    const generation = this.#generation + 1;
    const { spent: replacements } = this.#budget;
    this.#options.onEvent({ type: "replaced", group, generation, replacements, error });
    this.#options.owns().then((owned) => {
      const isNext = !this.#failure && this.#line && this.#generation + 1 === generation;
      if (owned && isNext) start();
    });
  }

  /** Excludes a device that broke from the next generation. */
  #leaveOut({ facts }: EngineError): void {
    const failure = facts.failure as FailureFacts | undefined;
    if (failure?.action === "exclude_device" && this.spec.without) {
      this.#spec = this.spec.without(failure);
    }
  }

  #giveUp(error: EngineError, state: "failed" | "stopped"): void {
    if (this.#state === "ready") this.#gate = closedGate();
    this.#failure = error;
    this.#state = state;
    this.#gate.reject(error);
    this.#emitState();
  }

  #emitState(): void {
    const { group } = this.spec;
    const state = { group, generation: this.#generation, state: this.#state, ranks: this.#ranks };
    this.#options.onEvent({ type: "group", ...state, failure: this.#failure });
  }
}

function closedGate(): PromiseWithResolvers<void> {
  const gate = Promise.withResolvers<void>();
  gate.promise.catch(() => {}); // A group may be given up while nobody waits for it.
  return gate;
}
