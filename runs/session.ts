import { z } from "zod";
import { AlgorithmChoice, hasValueModel, headOf } from "../algs/mod.ts";
import { type Config, RecoveryConfig, restoreRecorded, type SettingChange, withSettings } from "../configs/mod.ts";
import { RolloutsConfig } from "../rollouts/mod.ts";
import {
  type CreateOptions,
  type DirectoryOwner,
  Engine,
  type EngineEvent,
  type EventListener,
  FencedError,
  type Graph,
  type GraphDefinition,
  type JournalRow,
  type NewRow,
  newRunId,
  type Outcome,
  provide,
  type Provided,
  recordedValue,
  type RunHead,
  stillOwns,
} from "../engine/mod.ts";
import {
  type AnyRole,
  type AskedReplan,
  askedReplans,
  type Caller,
  ensureEnvironment,
  Faults,
  type OnEnvironmentProgress,
  placeGpus,
  plannedGroups,
  type PolicyTrainer,
  Replan,
  replanned,
  type RestartCause,
  ROLES,
  SamplerConfig,
  TrainerConfig,
  trainerRole,
  ValueModelConfig,
  valueTrainer,
  type WorkerBlocks,
  WorkersConfig,
  workersOf,
  type WorkersOptions,
} from "../workers/mod.ts";
import { checkRewards } from "./check_rewards.ts";
import type { Home } from "./home.ts";
import { removeLeftovers } from "./leftovers.ts";
import { residentRows } from "./lineage.ts";
import { MetricsFile } from "./metrics_file.ts";
import { isRecorded } from "./recorded.ts";
import { rowTables } from "./row_tables.ts";
import { claimDirectories, refuseOtherHome, refuseUsed } from "./run_directories.ts";
import { changedSettings, earlierConfigs, settingsRows } from "./settings.ts";
import { Critic, Paths, Rewards, Rows, type RowTables, Sampler, Trainer, Trainers } from "../flows/mod.ts";
import { WorkerGroups } from "./worker_groups.ts";

/** How a run is executed, by any engine. */
export type SessionOptions = {
  /** Once aborted, nothing new starts and the run can be resumed. */
  drain?: AbortSignal;
  /** Resume even if the graph has changed since the run started. */
  accept?: boolean;
  /** The head as the claim answered it, if this process has claimed the run already. */
  claimed?: RunHead;
  /** How long the run stays this engine's without a sign of life. */
  lease_ms?: number;
  /** Numerics that replace the run's on resume: recorded as replans. */
  replan?: AskedReplan;
  /** Settings that change from here on, the graph being built with them already (`graphConfig`). */
  settings?: readonly SettingChange[];
  /**
   * Asked when the run is to stop: true if its machine is about to go, and the newest policy is
   * saved at once too. It is always saved before the workers end.
   */
  preempted?: () => boolean;
  /**
   * The configuration's rows, if they are read and its rewards were looked at (`checkRewards`)
   * already.
   */
  rows?: RowTables;
  /** Resources in addition to the shipped ones, for custom stages. */
  resources?: readonly Provided[];
  onEvent?: EventListener;
  onWorkers?: WorkersOptions["onEvent"];
  /** The hosts of the workers by name. Default: this machine. */
  hosts?: WorkersOptions["hosts"];
  /** Told while a Python environment is made. */
  onSetup?: OnEnvironmentProgress;
};

/**
 * Records from before a setting existed have its default. A custom graph may have further settings.
 */
const RecordedTrainer = z.looseObject(TrainerConfig.omit({ optimizer: true }).shape);
const RecordedSampler = z.looseObject(SamplerConfig.shape);
const NO_SAMPLERS: SamplerConfig = { ...SamplerConfig.parse({}), replicas: 0 };

/**
 * Which worker processes a configuration asks for; null if it has no trainer. Without a sampler
 * block there are none of those.
 */
export function workerBlocks(
  config: Record<string, unknown>,
  roles: readonly AnyRole[] = ROLES,
): WorkerBlocks | null {
  if (!config.trainer) return null;
  const { seed, rollouts, recovery } = config as unknown as WorkerBlocks & { rollouts?: object; recovery?: object };
  const trainer = RecordedTrainer.parse(restoreRecorded(RecordedTrainer, config.trainer));
  const sampler = config.sampler === undefined
    ? NO_SAMPLERS
    : RecordedSampler.parse(restoreRecorded(RecordedSampler, config.sampler));
  const { reward_processes } = RolloutsConfig.parse(rollouts ?? {});
  const workers = WorkersConfig.parse(config.workers ?? {});
  const { allow_replan } = RecoveryConfig.parse(recovery ?? {});
  const algorithm = AlgorithmChoice.safeParse(config.algorithm); // A custom graph may have none, or a custom one.
  const head = algorithm.success ? headOf(algorithm.data) : null;
  const values = algorithm.success && hasValueModel(algorithm.data);
  const value_model = values ? ValueModelConfig.parse(config.value_model ?? {}) : null;
  const own = roles.filter(({ name, block }) => block !== null && config[name] !== undefined);
  const others = Object.fromEntries(own.map(({ name, block }) => [name, block.parse(config[name])]));
  return { trainer, head, value_model, sampler, seed: seed ?? 0, reward_processes, allow_replan, workers, others };
}

/** Records a new run. Nothing of it starts. */
export async function createRun<In, C, T>(
  home: Home,
  definition: GraphDefinition<In, C, T>,
  options: { config: NoInfer<In>; entry: string } & Omit<CreateOptions, "entry" | "packages">,
): Promise<RunHead> {
  const { config, ...rest } = options;
  const owner = await home.owner(rest.id ?? newRunId(definition.name));
  refuseUsed(home, owner);
  await home.rememberStore();
  const engine = new Engine({ store: home.store, artifacts: home.artifacts });
  const told = { id: owner.run, home: owner.home, packages: { deno: Deno.version.deno } };
  const head = await engine.create(definition, config, { ...rest, ...told });
  await claimDirectories(home, head, { make: true }); // After it: a directory's run is always one that a journal knows.
  return head;
}

/**
 * Executes a recorded run to its end: takes it, boots its workers while the journal replays, and stops them however it ends.
 * The one way a run is executed, for commands, `serve` and scripts alike. `head`: as it was before anybody took it.
 */
export async function executeRun<T>(
  home: Home,
  { head, graph }: { head: RunHead; graph: Graph<T> },
  options: SessionOptions = {},
): Promise<Outcome<T>> {
  const run = head.id;
  const say = (text: string) => options.onEvent?.({ type: "log", run, key: "", text, at_ms: Date.now() });
  await takeDirectories(home, head, say);
  const owner = await home.owner(run);
  const settings = [...await changedSettings(home.store, head), ...options.settings ?? []];
  const config = withSettings(JSON.parse(head.config) as Record<string, unknown>, settings);
  const rows = options.rows ?? await checkedRows(home, { head, config }, options);
  const faults = Faults.parse(Deno.env.get("HOLDFAST_FAULT"), {
    dir: `${home.runDir(run)}/faults`,
    place: "engine",
    roles: ROLES.map(({ name }) => name),
    events: Deno.env.get("HOLDFAST_EVENTS"),
  });
  const recorded = await residentRows(home.store, head);
  const { blocks, asked } = plannedBlocks(workerBlocks(config), recorded, options.replan ?? {});
  if (blocks && options.settings?.length) placeGpus([...plannedGroups(blocks).values()]); // As with replans: told at once.
  const groups = blocks === null ? null : makeGroups(home, {
    run,
    blocks,
    recorded: [...recorded, ...asked],
    faults,
    restart: restartCause(head),
    options,
    onLeaving: () => saveNow(),
  });
  const metrics = new MetricsFile(home, { head, owns: (epoch) => stillOwns(home.store, run, epoch) });
  let epoch = 0;
  const record = (rows: NewRow[]) => recordAs(home, { run, epoch }, rows);
  const engine = new Engine({
    store: home.store,
    artifacts: home.artifacts,
    faults,
    lease_ms: options.lease_ms,
    resources: [...resourcesOf(home, { owner, rows, groups }), ...(options.resources ?? [])],
    slots: workerSlots(groups),
    onEvent: (event: EngineEvent) => {
      if (event.type === "run_started") {
        epoch = event.epoch;
        const before = record([...settingsRows(options.settings ?? []), ...asked]);
        groups?.start({ epoch, before });
        before.catch(() => {}); // Without workers the next append fails of the same.
      }
      metrics.on(event);
      options.onEvent?.(event);
    },
  });
  const { drain, accept, claimed, preempted } = options;
  const saveNow = async () => {
    await Promise.all(groups?.trainers.map((trainer) => saveBeforeEnd(trainer, { run, record, options })) ?? []);
  };
  const letGo = orderlyEnd({ drain, preempted, metrics, groups, saveNow });
  try {
    return await engine.execute(run, graph, {
      earlier: earlierConfigs(graph.config, settings),
      drain,
      accept,
      claimed,
      letGo,
      beforeEnd: () => metrics.flush(),
    });
  } finally {
    await letGo();
    await removeLeftovers(home, run, say);
  }
}

/** The run's directories are this home's from here on; what of them is damaged is made again. */
async function takeDirectories(home: Home, head: RunHead, say: (text: string) => void): Promise<void> {
  const damaged = home.damagedFacts(head.id);
  await refuseOtherHome(home, head);
  for (const path of damaged) say(`${path} is damaged: it is made again from what is recorded`);
  await claimDirectories(home, head, { make: true });
  await home.rememberStore();
}

async function recordAs(home: Home, { run, epoch }: { run: string; epoch: number }, rows: NewRow[]): Promise<void> {
  if (rows.length === 0) return;
  const { fenced } = await home.store.append(run, epoch, rows);
  if (fenced) throw new FencedError(`Cannot record in run '${run}' because another engine owns it`, { run, epoch });
}

/** The configuration's rows. Before the first epoch its rewards are looked at with them. */
async function checkedRows(
  home: Home,
  { head, config }: { head: RunHead; config: Partial<Config> },
  { onSetup }: SessionOptions,
): Promise<RowTables> {
  const rows = await rowTables(config);
  if (head.epoch > 0) return rows;
  const scored = head.parent === null ? rows : {}; // A fork keeps its parent's rows, whatever they lack.
  await checkRewards(config, { rows: scored, home: home.dir, onSetup });
  return rows;
}

type Leaving = Pick<SessionOptions, "drain" | "preempted"> & {
  metrics: MetricsFile;
  groups: WorkerGroups | null;
  saveNow: () => Promise<void>;
};

/** What ends a session, once, however it ends: metrics, the newest policy, the workers. */
function orderlyEnd({ drain, preempted, metrics, groups, saveNow }: Leaving): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  let saved: Promise<void> = Promise.resolve();
  const saveIfPreempted = () => {
    if (preempted?.()) saved = saveNow();
  };
  // At once too: what is in flight may take longer than the machine is left to us.
  drain?.addEventListener("abort", saveIfPreempted, { once: true });
  const endInOrder = async () => {
    await metrics.close();
    drain?.removeEventListener("abort", saveIfPreempted);
    await saved;
    if (drain?.aborted) saved = saveNow(); // Who resumes it need not redo what was trained since the last checkpoint.
    await saved;
    await groups?.stop();
  };
  return () => stopped ??= endInOrder();
}

/** The blocks as replans have left them, and the rows that the asked ones make. */
function plannedBlocks(
  blocks: WorkerBlocks | null,
  recorded: JournalRow[],
  asked: AskedReplan,
): { blocks: WorkerBlocks | null; asked: NewRow[] } {
  if (blocks === null) return { blocks, asked: [] };
  const earlier = recorded.filter(({ kind }) => kind === "note/replan").map((row) => Replan.parse(recordedValue(row)));
  const { trainer, value_model } = blocks;
  const critic = value_model ? valueTrainer(trainer, value_model) : null;
  const rows = [
    ...askedReplans(trainer, earlier, asked),
    ...(critic ? askedReplans(critic, earlier, asked, "value_model") : []),
  ];
  const then = replannedBlocks(blocks, [...earlier, ...rows]);
  if (rows.length > 0) placeGpus([...plannedGroups(then).values()]); // What this machine has not is bad input, told at once.
  const note = (row: Replan): NewRow => ({ kind: "note/replan", key: "resume", value: JSON.stringify(row) });
  return { blocks: then, asked: rows.map(note) };
}

/** The blocks of a configuration as these replans have left them. */
export function replannedBlocks<T extends { trainer?: object; value_model?: object | null }>(
  blocks: T,
  replans: readonly Replan[],
): T {
  const { trainer, value_model } = blocks;
  return {
    ...blocks,
    ...(trainer && { trainer: replanned(trainer, replans) }),
    ...(value_model && { value_model: replanned(value_model, replans, "value_model") }),
  };
}

/** A failure costs nothing but time: what is recorded makes the policy again. */
async function saveBeforeEnd(
  trainer: PolicyTrainer,
  { run, record, options }: { run: string; record: (rows: NewRow[]) => Promise<void>; options: SessionOptions },
): Promise<void> {
  const caller: Caller = {
    key: "preempted",
    attempt: 1,
    record: (kind, key, value) => record([{ kind, key, value: JSON.stringify(value) }]),
  };
  const log = (text: string) => options.onEvent?.({ type: "log", run, key: caller.key, text, at_ms: Date.now() });
  try {
    const saved = await trainer.saveNow(caller);
    if (saved) log(`saved ${saved.dir} before the workers end`);
  } catch (error) {
    log(`no checkpoint was saved before the workers end: ${(error as Error).message}`);
  }
}

/** An engine that stops in order gives the run back. */
function restartCause({ owner, epoch, parent }: RunHead): RestartCause {
  if (owner !== null) return "engine_lost";
  return epoch === 0 && parent !== null ? "fork" : "resume";
}

type Making = {
  run: string;
  blocks: WorkerBlocks;
  recorded: Pick<JournalRow, "kind" | "key" | "value">[];
  faults: Faults;
  restart: RestartCause;
  options: SessionOptions;
  onLeaving: () => Promise<void>;
};

function makeGroups(
  home: Home,
  { run, blocks, recorded, faults, restart, options, onLeaving }: Making,
): WorkerGroups {
  return new WorkerGroups({
    run,
    home: home.dir,
    blocks,
    artifacts: home.artifacts,
    recorded,
    restart,
    python: (kind, own) => ensureEnvironment(kind, { home: home.dir, own, onProgress: options.onSetup }),
    onEvent: options.onWorkers,
    hosts: options.hosts,
    onFrame: (phase) => void faults.at("frame", phase),
    owns: (epoch) => stillOwns(home.store, run, epoch),
    isRecorded: (key) => isRecorded(home.store, run, key),
    onLeaving,
  });
}

/** A task of a role holds one of its groups. Trainers take turns by themselves. */
function workerSlots(groups: WorkerGroups | null): Record<string, number> {
  const roles = [...groups?.byRole ?? []].filter(([role]) => role !== trainerRole);
  return Object.fromEntries(roles.map(([{ name }, workers]) => [name, workers.count || 1]));
}

function resourcesOf(
  home: Home,
  { owner, rows, groups }: { owner: DirectoryOwner; rows: RowTables; groups: WorkerGroups | null },
): Provided[] {
  const { run } = owner;
  const dirs = {
    home: home.dir,
    owner,
    run: home.runDir(run),
    checkpoints: home.checkpointsDir(run),
    publications: `${home.runDir(run)}/publications`,
  };
  const always = [provide(Rows, rows), provide(Paths, dirs)];
  if (groups === null) return always;
  return [
    ...always,
    provide(Trainer, groups.trainer),
    provide(Trainers, groups.trainers),
    ...(groups.critic ? [provide(Critic, groups.critic)] : []),
    provide(Sampler, groups.sampler),
    provide(Rewards, groups.rewards),
    ...[...groups.byRole].map(([role, workers]) => provide(workersOf(role), workers)),
  ];
}
