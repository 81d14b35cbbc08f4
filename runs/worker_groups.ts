import type { Config } from "../configs/mod.ts";
import { type ModelHead, Numerics } from "../data/mod.ts";
import {
  type ArtifactStore,
  type Clock,
  type EngineError,
  type JournalRow,
  type RowKind,
  systemClock,
} from "../engine/mod.ts";
import { PolicySampler, RewardScorer } from "../rollouts/mod.ts";
import {
  type Caller,
  type CallOptions,
  type CallResult,
  type EnvironmentKind,
  environmentOf,
  type FailureFacts,
  type GpuPlace,
  type GroupSpec,
  type Loss,
  type Operator,
  PolicyTrainer,
  recordedRows,
  type RestartCause,
  type RewardSpec,
  type SamplerConfig,
  samplerGroup,
  trainerGroup,
  type ValueModelConfig,
  valueTrainer,
  type WorkerGroup,
  Workers,
  type WorkersEvent,
  type WorkersOptions,
} from "../workers/mod.ts";
import { Devices } from "./devices.ts";

/** What of a configuration decides which processes a run has. */
export type WorkerBlocks =
  & Pick<Config, "seed" | "workers">
  & { sampler: SamplerConfig }
  & { trainer: Omit<Config["trainer"], "optimizer">; reward_processes: number; allow_replan: boolean }
  & { head?: ModelHead | null; value_model?: ValueModelConfig | null };

/** The blocks of the groups, each as it is after replans. `critic`: null where there is no value model. */
export function groupBlocks(
  { trainer, value_model, sampler }: Pick<WorkerBlocks, "trainer" | "value_model" | "sampler">,
) {
  return { trainer, critic: value_model ? valueTrainer(trainer, value_model) : null, sampler };
}

/** The groups that train, each with a separate chain of versions. */
type TrainerName = "trainer" | "critic";

/** Rows that say which versions there are, what they can be rebuilt from, and with which numerics to continue. */
export const RESIDENT_KINDS: RowKind[] = [
  "note/version",
  "note/checkpoint",
  "note/checkpoint_dropped",
  "note/checkpoint_set_aside",
  "note/replan",
  "note/device_excluded",
];

/**
 * What the worker groups of a run are started with.
 * @internal
 */
export type WorkerGroupsOptions = {
  run: string;
  home: string;
  blocks: WorkerBlocks;
  artifacts: ArtifactStore;
  /** What earlier engines recorded of versions and checkpoints. */
  recorded: Pick<JournalRow, "kind" | "key" | "value">[];
  /** How the previous engine ended, if there was one. */
  restart?: RestartCause;
  /** The interpreter of an environment, made if it is missing; or the user's own. */
  python: (kind: EnvironmentKind, own: string | null) => Promise<string>;
  clock?: Clock;
  onEvent?: WorkersOptions["onEvent"];
  onFrame?: WorkersOptions["onFrame"];
  onLeaving?: WorkersOptions["onLeaving"];
  /** Whether the engine of this epoch was not superseded. */
  owns?: (epoch: number) => Promise<boolean>;
  isRecorded?: WorkersOptions["isRecorded"];
};

/** A group that is named before it can be started: the first operation waits until it is there. */
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

  /** Of several losses before anything useful was done, the first counts. */
  lost(error: EngineError): void {
    this.#loss ??= { error, at_ms: this.#clock.monotonic() };
  }

  takeLoss(): Loss | null {
    const loss = this.#loss;
    this.#loss = null;
    return loss && { ...lossOf(loss.error), seconds: (this.#clock.monotonic() - loss.at_ms) / 1000 };
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

/** This engine has adopted an earlier engine's workers: one `recovery` row, with the first work that they did. */
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
    if (event.type === "operation") this.#seconds ??= Math.max(0, event.sent_ms - this.#began_ms) / 1000;
  }

  async record(caller: CallOptions & Partial<Pick<Caller, "record">>): Promise<void> {
    if (this.#state !== "adopted" || !caller.record) return;
    this.#state = "recorded";
    const row = { action: "adopt" as const, version: null, batches_redone: 0, seconds: this.#seconds ?? 0 };
    await caller.record("recovery", caller.key, { cause: "engine_lost", ...row });
  }
}

/**
 * The worker groups of a run, as the resources that stages ask for. Nothing is started before `start`, which returns at
 * once: processes boot while the engine replays. The reward processes start with their first use.
 */
export class WorkerGroups {
  readonly trainer: PolicyTrainer;
  /** The value model's; null: there is none. */
  readonly critic: PolicyTrainer | null;
  readonly sampler: PolicySampler;
  readonly rewards: RewardScorer;
  readonly #options: WorkerGroupsOptions;
  readonly #groups = new Map<string, LazyGroup>();
  readonly #early: LazyGroup[];
  readonly #adoption: Adoption;
  readonly #devices: Devices;
  readonly #ready = Promise.withResolvers<Workers>();
  #workers: Promise<Workers> | null = null;

  constructor(options: WorkerGroupsOptions) {
    this.#options = options;
    this.#adoption = new Adoption(options.clock ?? systemClock);
    this.#devices = new Devices(options.recorded);
    this.#ready.promise.catch(() => undefined);
    const { blocks, restart } = options;
    this.trainer = this.#trainer("trainer");
    this.critic = groupBlocks(blocks).critic ? this.#trainer("critic") : null;
    const samplers = Array.from(
      { length: blocks.sampler.replicas },
      (_, i) => this.#lazy(`sampler/${i}`, () => this.#samplerSpec(i)),
    );
    this.#early = [...this.#groups.values()];
    this.sampler = new PolicySampler({
      operators: samplers,
      restart,
      republish: ({ policy, publication }, caller) => this.trainer.publish(policy, publication.dir, caller),
    });
    const pool = this.#onFirstUse(this.#lazy("reward", () => this.#rewardSpec()));
    this.rewards = new RewardScorer({ pool, artifacts: options.artifacts });
  }

  /** All trainers. */
  get trainers(): PolicyTrainer[] {
    return this.critic ? [this.trainer, this.critic] : [this.trainer];
  }

  /** Starts hub, agent and groups under `epoch`, after `before`. What fails is what the first operation throws. */
  start({ epoch, before }: { epoch: number; before?: Promise<void> }): void {
    this.#adoption.begin();
    this.#workers = Promise.resolve(before).then(() => this.#boot(epoch));
    this.#workers.then(this.#ready.resolve, this.#ready.reject);
    for (const group of this.#early) group.begin(this.#workers);
  }

  /** Ends every process of the run. */
  async stop(): Promise<void> {
    const workers = await this.#workers?.catch(() => null);
    await workers?.stop();
  }

  async #boot(epoch: number): Promise<Workers> {
    const { run, home, blocks, onFrame, onLeaving, clock, artifacts, isRecorded } = this.#options;
    const owns = this.#options.owns && (() => this.#options.owns!(epoch));
    const onEvent = (event: WorkersEvent) => this.#on(event);
    const python = await this.#trainerPython();
    const { grace_s, preempt_grace_s, silent_s, host, port, interface: named } = blocks.workers;
    const places = { run, home, artifacts, host, port, interface: named };
    const preemptGraceMs = Math.round(preempt_grace_s * 1000);
    const limits = { graceMs: grace_s * 1000, preemptGraceMs, silentMs: silent_s * 1000 };
    const told = { owns, isRecorded, onEvent, onFrame, onLeaving };
    const workers = await Workers.start({ ...places, ...limits, ...told, epoch, attempt: epoch, python, clock });
    // An engine that died between a hand-over and the end of these ranks has left them; a redo that needs them starts them again.
    for (const name of ["trainer", "critic"] as const) workers.dismissLeft(redoGroup(name));
    return workers;
  }

  /** A trainer over the group of this name. */
  #trainer(name: TrainerName): PolicyTrainer {
    const { artifacts, recorded, restart, home, run, blocks, clock = systemClock } = this.#options;
    const group = this.#lazy(name, () => this.#trainerSpec(name));
    const operator = Object.assign(group, {
      withRanks: (ranks: number, { signal }: CallOptions) => this.#onRanks(name, { ranks, signal }),
    });
    const head = headOf(name, blocks) ?? undefined;
    const { non_finite_max: nonFiniteMax } = groupBlocks(blocks)[name]!;
    return new PolicyTrainer({
      ...(name === "critic" ? { group: name, block: "value_model" as const, head } : { head }),
      ...{ operator, artifacts, clock, restart, nonFiniteMax, allowReplan: blocks.allow_replan },
      numerics: async (micro_batch_tokens_max) => {
        const { info } = await (await group.group()).ready();
        return Numerics.parse({ ...(info.numerics as Record<string, unknown>), micro_batch_tokens_max });
      },
      recorded: recordedRows(recorded),
      checkpointsDir: `${home}/checkpoints/${run}`,
    });
  }

  #lazy(name: string, spec: () => Promise<GroupSpec>): LazyGroup {
    const { clock = systemClock } = this.#options;
    const group = new LazyGroup(spec, { clock, adoption: this.#adoption, devices: this.#devices });
    this.#groups.set(name, group);
    return group;
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

  async #trainerPython(): Promise<string> {
    const { trainer } = this.#options.blocks;
    return await this.#options.python(environmentOf(trainer), trainer.python);
  }

  async #trainerSpec(group: TrainerName, changed: { ranks?: number; devices?: null } = {}): Promise<GroupSpec> {
    const { blocks } = this.#options;
    const all = groupBlocks(blocks);
    const own = { ...all[group]!, ...changed };
    const python = await this.#options.python(environmentOf(own), own.python);
    const options = { group, head: headOf(group, blocks), python, ...startOf(blocks) };
    const spec = (gpus: GpuPlace | null) => trainerGroup(own, { ...options, gpus });
    return this.#devices.placed(this.#devices.places({ ...all, [group]: own })[group], spec);
  }

  /** A second group beside one that waits without a model, to redo what was trained on another number of ranks. */
  async #onRanks(
    name: TrainerName,
    { ranks, signal }: { ranks: number; signal?: AbortSignal },
  ): Promise<Operator & { end(): Promise<void> }> {
    const workers = await this.#ready.promise;
    const spec = await this.#trainerSpec(name, { ranks, devices: null });
    const group = workers.group({ ...spec, group: redoGroup(name) });
    const end = () => Promise.resolve(workers.dismiss(redoGroup(name)));
    await group.ready(signal).catch(async (error) => {
      await end();
      throw error;
    });
    return { call: (op, args, options) => group.call(op, args, options), end };
  }

  async #samplerSpec(replica: number): Promise<GroupSpec> {
    const { sampler, ...rest } = this.#options.blocks;
    const python = await this.#options.python(environmentOf(sampler), sampler.python);
    const spec = (gpus: GpuPlace | null) => samplerGroup(sampler, { python, replica, gpus, ...startOf(rest) });
    const places = this.#devices.places(groupBlocks(this.#options.blocks));
    return this.#devices.placed(places.samplers[replica] ?? null, spec);
  }

  async #rewardSpec(): Promise<GroupSpec> {
    return {
      group: "reward",
      role: "reward",
      ranks: 1,
      python: await this.#trainerPython(),
      module: "holdfast_worker.rewards.worker",
      spec: { processes: this.#options.blocks.reward_processes } satisfies RewardSpec,
      ...limitsOf(this.#options.blocks.workers),
    };
  }
}

const redoGroup = (name: TrainerName) => `${name}_redo`;

/** What the model of a group ends in, if not in a vocabulary. */
function headOf(name: TrainerName, { head }: WorkerBlocks): ModelHead | null {
  return name === "critic" ? "value" : head ?? null;
}

function lossOf({ cause_kind: cause, facts }: EngineError): Omit<Loss, "seconds"> {
  const { failure, evidence } = facts as { failure?: FailureFacts; evidence?: string };
  return { cause, ...(failure && { observed: failure.observed }), ...(evidence && { evidence }) };
}

function startOf({ seed, workers }: Pick<WorkerBlocks, "seed" | "workers">) {
  return { seed, ...limitsOf(workers) };
}

function limitsOf({ start_timeout_s, no_progress_s }: WorkerBlocks["workers"]) {
  return { start_timeout_ms: start_timeout_s * 1000, no_progress_ms: no_progress_s * 1000 };
}
