import { type ModelHead, Numerics } from "../../data/mod.ts";
import {
  type ArtifactStore,
  type Clock,
  type EngineError,
  type JournalRow,
  type RowKind,
  systemClock,
} from "../../engine/mod.ts";
import { type KeptScores, PolicySampler, RewardScorer } from "../../rollouts/mod.ts";
import {
  type AnyRole,
  type Caller,
  type CallOptions,
  type CallResult,
  type EnvironmentKind,
  type FailureFacts,
  type GpuPlace,
  groupLimits,
  type GroupSpec,
  groupSpec,
  type Loss,
  onGpu,
  type Operator,
  plannedGroups,
  PolicyTrainer,
  recordedRows,
  type RestartCause,
  rewardRole,
  ROLES,
  RoleWorkers,
  samplerRole,
  Turns,
  valueTrainer,
  type WorkerBlocks,
  type WorkerGroup,
  Workers,
  type WorkersEvent,
  type WorkersOptions,
} from "../../workers/mod.ts";
import { Devices } from "./devices.ts";
import { HostDevices } from "./host_devices.ts";

/** Groups that train, each with a separate chain of versions. */
type TrainerName = "trainer" | "critic";

/**
 * Rows that say which versions exist, what they can be rebuilt from, and with which numerics to
 * continue.
 */
export const RESIDENT_KINDS: RowKind[] = [
  "note/version",
  "note/checkpoint",
  "note/checkpoint_dropped",
  "note/checkpoint_set_aside",
  "note/replan",
  "note/device_excluded",
];

/**
 * What the worker groups of a run need at their start.
 * @internal
 */
export type WorkerGroupsOptions = {
  run: string;
  home: string;
  blocks: WorkerBlocks;
  roles?: readonly AnyRole[]; // The shipped ones by default.
  artifacts: ArtifactStore;
  /** What earlier engines recorded about versions and checkpoints. */
  recorded: Pick<JournalRow, "kind" | "key" | "value">[];
  /** How the previous engine ended, if there was one. */
  restart?: RestartCause;
  /** The interpreter of an environment, created if missing, or the user's own. */
  python: (kind: EnvironmentKind, userPython: string | null) => Promise<string>;
  clock?: Clock;
  onEvent?: WorkersOptions["onEvent"];
  onFrame?: WorkersOptions["onFrame"];
  onLeaving?: WorkersOptions["onLeaving"];
  /** Whether the engine of this epoch still owns the run. */
  owns?: (epoch: number) => Promise<boolean>;
  isRecorded?: WorkersOptions["isRecorded"];
  hosts?: WorkersOptions["hosts"];
  /** Where results of rewards are kept; absent: nowhere. */
  kept?: KeptScores;
};

/** A group that is named before it can be started: the first operation waits for it. */
class LazyGroup implements Operator {
  readonly #started = Promise.withResolvers<WorkerGroup>();
  readonly #clock: Clock;
  #loss: { error: EngineError; at_ms: number } | null = null;
  readonly #adoption: Adoption;
  readonly #devices: Devices;

  constructor(
    readonly start: (workers: Workers) => Promise<GroupSpec>,
    options: { clock: Clock; adoption: Adoption; devices: Devices },
  ) {
    this.#clock = options.clock;
    this.#devices = options.devices;
    this.#adoption = options.adoption;
    // It may fail while nothing waits; later callers receive the error.
    this.#started.promise.catch(() => undefined);
  }

  begin(workers: Promise<Workers>): void {
    const group = workers.then(async (running) => running.group(await this.start(running)));
    group.then(this.#started.resolve, this.#started.reject);
  }

  group(): Promise<WorkerGroup> {
    return this.#started.promise;
  }

  /** If several losses happen before any useful work, the first counts. */
  lost(error: EngineError): void {
    this.#loss ??= { error, at_ms: this.#clock.monotonic() };
  }

  takeLoss(): Loss | null {
    const loss = this.#loss;
    this.#loss = null;
    return loss &&
      { ...lossOf(loss.error), seconds: (this.#clock.monotonic() - loss.at_ms) / 1000 };
  }

  async call(op: string, args: unknown, options: CallOptions): Promise<CallResult> {
    const answer = await (await this.group()).call(op, args, options);
    await this.#adoption.record(options);
    await this.#devices.record(options);
    return answer;
  }

  async holds(op: string, args: unknown, options: CallOptions): Promise<boolean> {
    return (await this.group()).holds(op, args, options);
  }
}

/**
 * This engine has adopted an earlier engine's workers: one `recovery` row, with their first work.
 */
class Adoption {
  readonly #clock: Clock;
  #began_ms = 0;
  #seconds: number | null = null;
  #state: "none" | "adopted" | "recorded" = "none";

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(): void {
    this.#began_ms = this.#clock.monotonic();
  }

  on(event: WorkersEvent): void {
    if (event.type === "agent" && event.state === "adopted") this.#state = "adopted";
    if (event.type === "operation") {
      this.#seconds ??= Math.max(0, event.sent_ms - this.#began_ms) / 1000;
    }
  }

  async record(caller: CallOptions & Partial<Pick<Caller, "record">>): Promise<void> {
    if (this.#state !== "adopted" || !caller.record) return;
    this.#state = "recorded";
    const row = {
      action: "adopt" as const,
      version: null,
      batches_redone: 0,
      seconds: this.#seconds ?? 0,
    };
    await caller.record("recovery", caller.key, { cause: "engine_lost", ...row });
  }
}

/**
 * The worker groups of a run, as the resources that stages request. Nothing starts before `start`,
 * which returns immediately: processes boot while the engine replays. Reward processes start at
 * their first use.
 */
export class WorkerGroups {
  readonly trainer: PolicyTrainer;
  /** The value model's; null: there is none. */
  readonly critic: PolicyTrainer | null;
  readonly sampler: PolicySampler;
  readonly rewards: RewardScorer;
  /** The workers of each role. */
  readonly byRole: Map<AnyRole, RoleWorkers<AnyRole>>;
  readonly #options: WorkerGroupsOptions;
  readonly #planned: ReturnType<typeof plannedGroups>;
  readonly #groups: Map<string, LazyGroup>;
  readonly #turns = new Turns();
  readonly #adoption: Adoption;
  readonly #devices: Devices;
  readonly #hostDevices: HostDevices;
  readonly #ready = Promise.withResolvers<Workers>();
  #workers: Promise<Workers> | null = null;

  constructor(options: WorkerGroupsOptions) {
    this.#options = options;
    this.#adoption = new Adoption(options.clock ?? systemClock);
    this.#devices = new Devices(options.recorded);
    this.#ready.promise.catch(() => undefined);
    const { blocks, restart, roles = ROLES } = options;
    this.#planned = plannedGroups(blocks, roles);
    this.#hostDevices = new HostDevices(this.#devices);
    this.#groups = new Map([...this.#planned.keys()].map((name) => [name, this.#lazy(name)]));
    const operators = new Map(roles.map((role) => [role, this.#operatorsOf(role)]));
    this.byRole = new Map(
      [...operators].map(([role, all]) => [role, new RoleWorkers(role, all, this.#turns)]),
    );
    this.trainer = this.#trainer("trainer");
    this.critic = this.#planned.has("critic") ? this.#trainer("critic") : null;
    this.sampler = new PolicySampler({
      operators: operators.get(samplerRole)!,
      turns: this.#turns,
      restart,
      republish: ({ policy, publication }, caller) =>
        this.trainer.publish(policy, publication.dir, caller),
    });
    const [pool] = operators.get(rewardRole)!;
    const { artifacts, kept } = options;
    this.rewards = new RewardScorer({ pool: pool!, turns: this.#turns, artifacts, kept });
  }

  /** All trainers. */
  get trainers(): PolicyTrainer[] {
    return this.critic ? [this.trainer, this.critic] : [this.trainer];
  }

  /** Starts hub, agent and groups under `epoch`. The first operation throws any failure. */
  start(epoch: number): void {
    this.#adoption.begin();
    this.#workers = this.#boot(epoch);
    this.#workers.then(this.#ready.resolve, this.#ready.reject);
    for (const [name, group] of this.#groups) {
      if (this.#planned.get(name)!.role.starts === "with_the_run") group.begin(this.#workers);
    }
  }

  /** Ends every process of the run. */
  async stop(): Promise<void> {
    const workers = await this.#workers?.catch(() => null);
    await workers?.stop();
  }

  async #boot(epoch: number): Promise<Workers> {
    const { run, home, hosts, blocks, onFrame, onLeaving, clock } = this.#options;
    const { artifacts, isRecorded } = this.#options;
    const owns = this.#options.owns && (() => this.#options.owns!(epoch));
    const onEvent = (event: WorkersEvent) => this.#on(event);
    const python = await this.#agentPython();
    const { grace_s, preempt_grace_s, silent_s, host, port, interface: named } = blocks.workers;
    const places = { run, home, artifacts, hosts, host, port, interface: named };
    const preempt_grace_ms = Math.round(preempt_grace_s * 1000);
    const limits = { grace_ms: grace_s * 1000, preempt_grace_ms, silent_ms: silent_s * 1000 };
    const callbacks = { owns, isRecorded, onEvent, onFrame, onLeaving };
    const workers = await Workers.start({
      ...places,
      ...limits,
      ...callbacks,
      epoch,
      attempt: epoch,
      python,
      clock,
    });
    // An engine that died between a handover and the end of these ranks left them behind; a redo
    // that needs them starts them again.
    for (const name of ["trainer", "critic"] as const) workers.dismissInherited(redoGroup(name));
    return workers;
  }

  /** A trainer on the group of this name. */
  #trainer(name: TrainerName): PolicyTrainer {
    const { artifacts, recorded, restart, home, run, blocks, clock = systemClock } = this.#options;
    const group = this.#groups.get(name)!;
    const operator = Object.assign(group, {
      withRanks: (ranks: number, { signal }: CallOptions) => this.#onRanks(name, { ranks, signal }),
    });
    const head = headOf(name, blocks) ?? undefined;
    const { trainer, value_model } = blocks;
    const critic = name === "critic";
    const { non_finite_max } = critic ? valueTrainer(trainer, value_model!) : trainer;
    return new PolicyTrainer({
      group: critic ? name : undefined,
      block: critic ? "value_model" : undefined,
      head,
      operator,
      turns: this.#turns,
      artifacts,
      clock,
      restart,
      non_finite_max,
      allow_replan: blocks.allow_replan,
      numerics: async (micro_batch_tokens_max) => {
        const { info } = await (await group.group()).ready();
        return Numerics.parse({
          ...(info.numerics as Record<string, unknown>),
          micro_batch_tokens_max,
        });
      },
      recorded: recordedRows(recorded),
      checkpoints_dir: `${home}/checkpoints/${run}`,
    });
  }

  #lazy(name: string): LazyGroup {
    const { clock = systemClock } = this.#options;
    const groupOptions = { clock, adoption: this.#adoption, devices: this.#devices };
    return new LazyGroup((workers) => this.#spec(name, { workers }), groupOptions);
  }

  /** The groups of a role, in their order. */
  #operatorsOf(role: AnyRole): Operator[] {
    const planned = [...this.#planned.values()].filter((group) => group.role === role);
    const groups = planned.map(({ group }) => this.#groups.get(group)!);
    return role.starts === "with_the_run" ? groups : groups.map((group) => this.#onFirstUse(group));
  }

  #onFirstUse(group: LazyGroup): Operator {
    let begun = false;
    return {
      call: (op, args, options) => {
        if (!begun) group.begin(this.#ready.promise);
        begun = true;
        return group.call(op, args, options);
      },
      takeLoss: () => group.takeLoss(),
    };
  }

  #on(event: WorkersEvent): void {
    this.#adoption.on(event);
    if (event.type === "replaced") this.#groups.get(event.group)?.lost(event.error);
    this.#options.onEvent?.(event);
  }

  /** The agent's environment: the trainer's, which has its packages. */
  async #agentPython(): Promise<string> {
    const { environment, python } = this.#planned.get("trainer")!;
    return await this.#options.python(environment, python);
  }

  async #spec(
    name: string,
    { workers, ranks }: { workers: Workers; ranks?: number },
  ): Promise<GroupSpec> {
    const planned = this.#planned.get(name)!;
    const gpus = ranks === undefined || planned.gpus === null
      ? planned.gpus
      : { ...planned.gpus, count: ranks, devices: null };
    const group = { ...planned, ranks: ranks ?? planned.ranks, gpus };
    const python = await this.#options.python(group.environment, group.python);
    const limits = groupLimits(planned.role, this.#options.blocks.workers);
    const spec = (gpus: GpuPlace | null) =>
      groupSpec(planned.role, group, { python, gpus, ...limits });
    const all = [...this.#planned.values()].map((one) => one === planned ? group : one);
    if (!this.#options.hosts) {
      return this.#devices.placed(this.#devices.places(all)[name] ?? null, spec);
    }
    if (group.gpus === null || !onGpu(group.gpus.device)) return spec(null);
    const hosts = await workers.hostGpus();
    const groups = all.map((one) => ({
      ...one,
      role: one.role.name,
      gpus: one.gpus && onGpu(one.gpus.device) ? one.gpus : null,
    }));
    const place = ranks === undefined ? "placed" : "beside";
    return this.#hostDevices[place](spec(null), { hosts, groups });
  }

  /**
   * A second group, next to one that waits without a model, which redoes what was trained on a
   * different number of ranks.
   */
  async #onRanks(
    name: TrainerName,
    { ranks, signal }: { ranks: number; signal?: AbortSignal },
  ): Promise<Operator & { end(): Promise<void> }> {
    const workers = await this.#ready.promise;
    const spec = await this.#spec(name, { workers, ranks });
    const hosts = spec.hosts ?? workers.hostsOf(name);
    const group = workers.group({ ...spec, group: redoGroup(name), hosts });
    const end = () => Promise.resolve(workers.dismiss(redoGroup(name)));
    await group.ready(signal).catch(async (error) => {
      await end();
      throw error;
    });
    return { call: (op, args, options) => group.call(op, args, options), end };
  }
}

const redoGroup = (name: TrainerName) => `${name}_redo`;

/** The head of a group's model, if it is not a vocabulary. */
function headOf(name: TrainerName, { head }: WorkerBlocks): ModelHead | null {
  return name === "critic" ? "value" : head ?? null;
}

function lossOf({ cause_kind: cause, facts }: EngineError): Omit<Loss, "seconds"> {
  const { failure, evidence } = facts as { failure?: FailureFacts; evidence?: string };
  return { cause, observed: failure?.observed, evidence };
}
