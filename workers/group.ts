import {
  type ArtifactStore,
  type Clock,
  type EngineError,
  errorFromJson,
  FencedError,
  hashJson,
  InfrastructureError,
  WorkerLostError,
} from "../engine/mod.ts";
import type { CallOptions, CallResult } from "./call.ts";
import { failureError, type FailureFacts, leavesGroupWhole } from "./failures.ts";
import { argsHash, type Inherited, type Running } from "./inheritance.ts";
import { OpenTasks } from "./open_tasks.ts";
import { argumentsOf } from "./payload.ts";
import type { AgentMessage, GroupState, RankState } from "./protocol.ts";
import type { GroupLine } from "./group_line.ts";
import { ReplacementBudget } from "./supervision.ts";
import { unlessAborted } from "./unless_aborted.ts";

/** What a group is: one job, done by `ranks` processes of one Python environment. */
export type GroupSpec = {
  /** `trainer`, `sampler/0`, ... */
  group: string;
  role: string;
  ranks: number;
  /** The environment's interpreter. */
  python: string;
  /** Python module with the role's `Worker` class. */
  module: string;
  /** Resolved configuration, handed to every rank. */
  spec: unknown;
  env?: Record<string, string>;
  /** Of its ranks, dealt out evenly and in a row. Default: where there is room. */
  hosts?: readonly string[];
  start_timeout_ms?: number;
  /** For operations whose caller sets no limit. */
  no_progress_ms?: number;
  /**
   * The same job without the device that broke; only where the group says which it has.
   * @throws {EngineError} If there are not enough devices left.
   */
  without?: (failure: FailureFacts) => GroupSpec;
};

export type GroupEvent =
  | ({ type: "group"; failure: EngineError | null } & GroupState)
  | { type: "replaced"; group: string; generation: number; replacements: number; error: EngineError }
  /** An operation is over, well or not. By the monotonic clock: sent to the agent, and its answer received. */
  | { type: "operation"; group: string; op: string; key: string; sent_ms: number; ended_ms: number };

type GroupOptions = {
  run: string;
  /** The engine's. Names of tasks hold it, so that no two engines of a run give the same. */
  epoch: number;
  /** The last generation of this name so far. */
  after?: number;
  clock: Clock;
  logDir: string;
  /** Environment of the ranks, below what the group's own `env` says. */
  env: Record<string, string>;
  /** For arguments that are too long for their message. */
  artifacts: Pick<ArtifactStore, "put">;
  onEvent: (event: GroupEvent) => void;
  /** Whether this engine was not superseded. Asked before ranks are ended or told to stop what they do. */
  owns: () => Promise<boolean>;
};

const START_TIMEOUT_MS = 300_000;
/** Calls that may wait for their turn. */
const QUEUE_MAX = 64;
/** For ranks to end by themselves once their group is not needed any more. */
export const DISMISS_GRACE_MS = 2_000;

/**
 * A gang of Python processes with one job, as the engine sees it. Runs one operation at a time; replaces itself when a rank dies
 * or hangs, as often as its budget of replacements allows, and then fails permanently with the root cause.
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
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;
  #tasks: OpenTasks;
  #budget = new ReplacementBudget();
  #failure: EngineError | null = null;
  /** The generation that was given up last: the agent may say so of the task and of the group. */
  #givenUp = -1;

  /** Starts once a line is attached. */
  constructor(spec: GroupSpec, options: GroupOptions) {
    [this.#spec, this.#options] = [spec, options];
    this.#generation = options.after ?? 0;
    this.#tasks = new OpenTasks(this, {
      ...options,
      onHung: (error) => this.#lost(error),
      onOver: (running) => this.#emitOperation(running),
    });
  }

  /** What it was asked to be. */
  get spec(): GroupSpec {
    return this.#spec;
  }

  /** Counts the gangs that had this group's name, from 1. Whatever an earlier one held in memory is gone. */
  get generation(): number {
    return this.#generation;
  }

  /** How far it has come, as its agent says. */
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

  /** Settles when all ranks are ready: what rank 0 says of itself (device, packages, repeats). */
  async ready(signal?: AbortSignal): Promise<{ generation: number; info: Record<string, unknown> }> {
    await unlessAborted(this.#gate.promise, signal);
    return { generation: this.#generation, info: this.#info };
  }

  /**
   * Runs `op` on all ranks, after the calls before it. Waits for the group to be ready, through replacements.
   * @throws {EngineError} With the root cause; `worker_lost` if the ranks went while they worked.
   */
  async call(op: string, args: unknown, options: CallOptions): Promise<CallResult> {
    if (this.#failure) throw this.#failure;
    if (this.#waiting >= QUEUE_MAX) {
      throw new InfrastructureError(
        `Cannot queue '${op}' on ${this.spec.group} because ${this.#waiting} calls wait: the limit is ${QUEUE_MAX}`,
        { group: this.spec.group, op },
      );
    }
    const before = this.#tail;
    const done = Promise.withResolvers<void>();
    this.#tail = done.promise;
    this.#waiting += 1;
    let running: Running | null = null;
    try {
      await unlessAborted(before, options.signal);
      await options.durable?.();
      await unlessAborted(this.#gate.promise, options.signal);
      running = await this.#begin(op, args, options);
      this.#progressedOnceRecorded(running, options);
      return await this.#tasks.answer(running, options);
    } finally {
      this.#waiting -= 1;
      before.then(() => running?.over.promise).then(done.resolve);
    }
  }

  /** Whether `call` would continue an earlier engine's work. */
  holds(op: string, args: unknown, options: CallOptions): boolean {
    return this.#tasks.holds({ op, key: options.key, args_hash: argsHash(args) }, options);
  }

  /** Adopts what an earlier engine started on this agent if it is the same group, else starts a new generation. */
  attach(line: GroupLine, inherited: Inherited | null = null): void {
    if (this.#state === "failed" || this.#state === "stopped") return;
    this.#line = line;
    if (inherited && this.#isThis(inherited)) this.#adopt(inherited);
    else this.#start();
  }

  #isThis({ group: { state, spec_hash }, tasks }: Inherited): boolean {
    const alive = state === "starting" || state === "ready";
    return alive && spec_hash === this.#specHash() && tasks.filter((task) => task.state === "running").length <= 1;
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

  /** The agent is lost, and every rank with it. A new agent's `attach` continues, if the budget allows one. */
  agentLost(error: EngineError): void {
    if (this.#state === "failed" || this.#state === "stopped") return;
    this.#line = null;
    this.#lost(error);
  }

  /** Ends the group permanently, from the engine's side. The agent's shutdown ends the processes. */
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

  /** Rank states as the last heartbeat says. */
  refresh(state: GroupState): void {
    if (state.generation === this.#generation && this.#state !== "failed") this.#ranks = state.ranks;
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
      log_dir: this.#options.logDir,
      start_timeout_ms: start_timeout_ms ?? START_TIMEOUT_MS,
    };
    try {
      this.#line?.send(message);
    } catch (error) { // It is too large: it will be the next time, too.
      return this.#giveUp(error as EngineError, "failed");
    }
    this.#emitState();
  }

  #env(): Record<string, string> {
    return { ...this.#options.env, ...this.spec.env };
  }

  /** Of all that makes the group what it is. A group of another engine with the same hash can stand for this one. */
  #specHash(): string {
    const { role, ranks, python, module, spec } = this.spec;
    const { interface: named, parts } = this.#line ?? {};
    const place = { ...(named && { interface: named }), ...(parts && { parts }) };
    return hashJson({ role, ranks, python, module, spec, env: this.#env(), ...place });
  }

  /** Takes up what an earlier engine began, else sends the operation once the ranks are free. */
  async #begin(op: string, args: unknown, options: CallOptions): Promise<Running> {
    const identity = { op, key: options.key, args_hash: argsHash(args) };
    const left = this.#tasks.take(identity, options);
    if (left) return left;
    const given = await argumentsOf(args, { op, group: this.spec.group, artifacts: this.#options.artifacts });
    while (this.#tasks.running) { // Of an earlier engine: nobody has asked for it, or a later call will.
      await unlessAborted(this.#tasks.running.over.promise, options.signal);
      await unlessAborted(this.#gate.promise, options.signal);
    }
    if (this.#failure) throw this.#failure;
    return this.#tasks.send(identity, { args: given, link: this.#line!, options });
  }

  #groupChanged(message: Extract<AgentMessage, { type: "group" }>): void {
    if (message.generation !== this.#generation || this.#state === "failed" || this.#state === "stopped") return;
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
    const { group, ranks } = this.spec;
    const place = { run: this.#options.run, group, ranks, generation: message.generation, op: this.#tasks.running?.op };
    if (message.failures.length > 0) return failureError(message.failures, place);
    return new WorkerLostError(`Cannot continue with ${group} because its agent says that it is ${message.state}`, {
      group,
    });
  }

  #finished(message: Extract<AgentMessage, { type: "result" }>): void {
    const running = this.#tasks.find(message.task);
    if (running) this.#tasks.resolve(running, message);
    else this.#line?.release(message.task);
  }

  #failed(message: Extract<AgentMessage, { type: "error" }>): void {
    const running = this.#tasks.find(message.task);
    if (!running) return this.#line?.release(message.task);
    const { group, ranks } = this.spec;
    const place = { run: this.#options.run, group, ranks, generation: this.#generation, op: running.op };
    const error = failureError(message.failures, place);
    if (running === this.#tasks.running && !leavesGroupWhole(message.failures, ranks)) return this.#lost(error);
    this.#tasks.reject(running, error);
  }

  /** This generation is over: its operation fails, and a new one starts unless the budget is spent. */
  #lost(error: EngineError): void {
    if (this.#givenUp === this.#generation) return; // The next one is on its way.
    this.#givenUp = this.#generation;
    if (this.#state === "ready") this.#gate = closedGate();
    this.#state = "starting";
    this.#tasks.close(error);
    if (!this.#budget.spend(error)) return this.#giveUp(this.#final(error), "failed");
    try {
      this.#leaveOut(error);
    } catch (refusal) {
      return this.#giveUp(refusal as EngineError, "failed");
    }
    const { group } = this.spec;
    const generation = this.#generation + 1;
    this.#options.onEvent({ type: "replaced", group, generation, replacements: this.#budget.spent, error });
    this.#ifOwned(() => this.#line && this.#generation + 1 === generation && this.#start());
  }

  #ifOwned(act: () => void): void {
    if (this.#failure) return;
    this.#options.owns().then((owned) => owned && !this.#failure && act());
  }

  /** The next generation does without a device that broke. */
  #leaveOut({ facts }: EngineError): void {
    const failure = facts.failure as FailureFacts | undefined;
    if (failure?.action === "exclude_device" && this.spec.without) this.#spec = this.spec.without(failure);
  }

  /** Work that is recorded gives the budget back; work that a failure came after, before it was recorded, is lost with it. */
  #progressedOnceRecorded({ result }: Running, options: CallOptions): void {
    const done = result.promise.then(() => this.#budget.failures, () => null);
    const recorded = options.recorded ? options.recorded() : done;
    Promise.all([done, recorded]).then(([failures]) => {
      if (failures === this.#budget.failures) this.#budget.progressed();
    }, () => {});
  }

  /** The last failure, in its own class, with how often the group was replaced because of it. */
  #final(error: EngineError): EngineError {
    const { spent } = this.#budget;
    if (spent === 0) return error;
    const text = `${error.message}\n  ${this.spec.group} was replaced ${spent} times without committed progress`;
    const json = { ...error.toJSON(), message: text, retryable: false };
    return errorFromJson({ ...json, facts: { ...error.facts, replacements: spent } });
  }

  #giveUp(error: EngineError, state: "failed" | "stopped"): void {
    if (this.#state === "ready") this.#gate = closedGate();
    this.#failure = error;
    this.#state = state;
    this.#gate.reject(error);
    this.#emitState();
  }

  #emitOperation({ op, key, sentAt: sent_ms }: Running): void {
    const ended_ms = this.#options.clock.monotonic();
    this.#options.onEvent({ type: "operation", group: this.spec.group, op, key, sent_ms, ended_ms });
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
