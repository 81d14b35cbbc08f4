import type { Config } from "../configs/mod.ts";
import { Numerics } from "../data/mod.ts";
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
  type RestartCause,
  samplerGroup,
  trainerGroup,
  type WorkerGroup,
  Workers,
  type WorkersEvent,
  type WorkersOptions,
} from "../workers/mod.ts";
import { Devices } from "./devices.ts";

/** What of a configuration decides which processes a run has. */
export type WorkerBlocks =
  & Pick<Config, "sampler" | "seed" | "workers">
  & { trainer: Omit<Config["trainer"], "optimizer">; reward_processes: number; allow_replan: boolean };

/** Rows that say which versions there are, what they can be rebuilt from, and with which numerics to go on. */
export const RESIDENT_KINDS: RowKind[] = [
  "note/version",
  "note/checkpoint",
  "note/checkpoint_dropped",
  "note/checkpoint_set_aside",
  "note/replan",
  "note/device_excluded",
];

export type WorkerGroupsOptions = {
  run: string;
  home: string;
  blocks: WorkerBlocks;
  artifacts: ArtifactStore;
  /** What earlier engines recorded of versions and checkpoints. */
  recorded: Pick<JournalRow, "kind" | "key" | "value">[];
  /** How the engine before this one ended, if there was one. */
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
    // Nobody may be waiting when it fails; whoever calls later is told.
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

/** That this engine goes on with workers which an earlier one started: one `recovery` row, with the first work that they did. */
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
    const { blocks, artifacts, recorded } = options;
    const trainer = this.#lazy("trainer", () => this.#trainerSpec());
    const operator = Object.assign(trainer, {
      withRanks: (ranks: number, { signal }: CallOptions) => this.#trainerWithRanks(ranks, signal),
    });
    const samplers = Array.from(
      { length: blocks.sampler.replicas },
      (_, i) => this.#lazy(`sampler/${i}`, () => this.#samplerSpec(i)),
    );
    this.#early = [trainer, ...samplers];
    const { restart } = options;
    this.trainer = new PolicyTrainer({
      operator,
      artifacts,
      clock: options.clock ?? systemClock,
      numerics: async (micro_batch_tokens_max) => {
        const { info } = await (await trainer.group()).ready();
        return Numerics.parse({ ...(info.numerics as Record<string, unknown>), micro_batch_tokens_max });
      },
      recorded: recorded.map(({ kind, key, value }) => ({ kind, key, value: JSON.parse(value) })),
      checkpointsDir: `${options.home}/checkpoints/${options.run}`,
      allowReplan: blocks.allow_replan,
      restart,
    });
    this.sampler = new PolicySampler({
      operators: samplers,
      restart,
      republish: ({ policy, publication }, caller) => this.trainer.publish(policy, publication.dir, caller),
    });
    this.rewards = new RewardScorer({ pool: this.#onFirstUse(this.#lazy("reward", () => this.#rewardSpec())) });
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
    const { grace_s, preempt_grace_s, silent_s, host, port } = blocks.workers;
    const places = { run, home, artifactsDir: artifacts.dir, host, port };
    const preemptGraceMs = Math.round(preempt_grace_s * 1000);
    const limits = { graceMs: grace_s * 1000, preemptGraceMs, silentMs: silent_s * 1000 };
    const told = { owns, isRecorded, onEvent, onFrame, onLeaving };
    return await Workers.start({ ...places, ...limits, ...told, epoch, attempt: epoch, python, clock });
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

  async #trainerSpec(blocks = this.#options.blocks): Promise<GroupSpec> {
    const { trainer, ...rest } = blocks;
    const python = await this.#trainerPython();
    const spec = (gpus: GpuPlace | null) => trainerGroup(trainer, { python, gpus, ...startOf(rest) });
    return this.#devices.placed(this.#devices.places(blocks).trainer, spec);
  }

  /** A second trainer, beside the one that waits without a model, to redo what was trained on another number of ranks. */
  async #trainerWithRanks(ranks: number, signal?: AbortSignal): Promise<Operator & { end(): Promise<void> }> {
    const workers = await this.#ready.promise;
    const { blocks } = this.#options;
    const spec = await this.#trainerSpec({ ...blocks, trainer: { ...blocks.trainer, ranks, devices: null } });
    const group = workers.group({ ...spec, group: REDO_GROUP });
    const end = () => Promise.resolve(workers.dismiss(REDO_GROUP));
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
    return this.#devices.placed(this.#devices.places(this.#options.blocks).samplers[replica] ?? null, spec);
  }

  async #rewardSpec(): Promise<GroupSpec> {
    return {
      group: "reward",
      role: "reward",
      ranks: 1,
      python: await this.#trainerPython(),
      module: "holdfast_worker.rewards.worker",
      spec: { processes: this.#options.blocks.reward_processes },
      ...limitsOf(this.#options.blocks.workers),
    };
  }
}

const REDO_GROUP = "trainer_redo";

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
