import { type Config, type SettingChange, withSettings } from "../../configs/mod.ts";
import {
  type CreateOptions,
  type DirectoryOwner,
  DrainedError,
  Engine,
  type EngineEvent,
  type EventListener,
  FencedError,
  type Graph,
  type GraphDefinition,
  hasEnded,
  type JournalRow,
  type NewRow,
  newRunId,
  type Outcome,
  provide,
  type Provided,
  type RunHead,
  stillOwns,
} from "../../engine/mod.ts";
import {
  type AskedReplan,
  ensureEnvironment,
  Faults,
  type OnEnvironmentProgress,
  placeGpus,
  plannedGroups,
  type RestartCause,
  ROLES,
  trainerRole,
  type WorkerBlocks,
  workersOf,
  type WorkersOptions,
} from "../../workers/mod.ts";
import {
  Critic,
  Paths,
  Rewards,
  Rows,
  type RowTables,
  Sampler,
  Trainer,
  Trainers,
} from "../../flows/mod.ts";
import { checkRewards } from "../checks/check_rewards.ts";
import { creation } from "../home/creation.ts";
import type { Home } from "../home/home.ts";
import { checkModelCode, presentData, presentModels } from "./hub_models.ts";
import { JournalMarking, markUnknownArtifacts } from "../garbage/journal_marks.ts";
import { removeLeftovers } from "../garbage/leftovers.ts";
import { checkRelease, thisRelease } from "./release.ts";
import { residentRows } from "../forks/lineage.ts";
import { refuseOlderJournal } from "../garbage/lost_journal.ts";
import { MetricsFile } from "../tracking/metrics_file.ts";
import { orderlyEnd, PREEMPTED, saveBeforeEnd } from "./orderly_end.ts";
import { isRecorded } from "./recorded.ts";
import { rowTables } from "./row_tables.ts";
import { resolvedStart, type Start, startRows } from "../start/start_from.ts";
import { claimDirectories, refuseOtherHome, refuseUsed } from "../home/run_directories.ts";
import { changedSettings, earlierConfigs, recordedConfig, settingsRows } from "./settings.ts";
import { trackedEnd } from "../tracking/tracked_end.ts";
import { Trackers } from "../tracking/trackers.ts";
import { plannedBlocks, workerBlocks } from "./worker_blocks.ts";
import { WorkerGroups } from "./worker_groups.ts";

/** How any engine executes a run. */
export type SessionOptions = {
  /** Once aborted, nothing new starts and the run can be resumed. */
  drain?: AbortSignal;
  /** Resume even if the graph, or Holdfast itself, has changed since the run started. */
  accept?: boolean;
  /** The head returned by the claim, if this process has already claimed the run. */
  claimed?: RunHead;
  /** How long the run stays this engine's without a heartbeat. */
  lease_ms?: number;
  /** Numerics that replace the run's on resume: recorded as replans. */
  replan?: AskedReplan;
  /** Settings that change from here on; the graph is already built with them (`graphConfig`). */
  settings?: readonly SettingChange[];
  /**
   * Asked when the run must stop: true if its machine is about to be reclaimed; the newest policy
   * is then also saved immediately. It is always saved before the workers end.
   */
  preempted?: () => boolean;
  /**
   * The configuration's rows, if they were already read and its rewards checked (`checkRewards`).
   */
  rows?: RowTables;
  /** Resources in addition to the shipped ones, for custom stages. */
  resources?: readonly Provided[];
  onEvent?: EventListener;
  onWorkers?: WorkersOptions["onEvent"];
  /** The hosts of the workers by name. Default: this machine. */
  hosts?: WorkersOptions["hosts"];
  /** Called while a Python environment is created. */
  onSetup?: OnEnvironmentProgress;
};

/**
 * Records a new run. Nothing starts. `start`: what its configuration's `start_from` names, if the
 * caller has resolved it. `inherited`: links what it has from its parent into its directory.
 */
export async function createRun<In, C, T>(
  home: Home,
  definition: GraphDefinition<In, C, T>,
  options:
    & {
      config: NoInfer<In>;
      entry: string;
      start?: Start | null;
      inherited?: (owner: DirectoryOwner) => Promise<NonNullable<CreateOptions["prefix"]>>;
    }
    & Omit<CreateOptions, "entry" | "packages" | "prefix">,
): Promise<RunHead> {
  const { config: written, start: known, inherited, ...rest } = options;
  const { config, start } = known !== undefined || inherited
    ? { config: written, start: known }
    : await resolvedStart(home, definition, { config: written });
  const owner = await home.owner(rest.id ?? newRunId(definition.name));
  using _ = await creation(home);
  await refuseUsed(home, owner);
  await refuseOlderJournal(home, owner.run);
  const prefix = start
    ? { rows: await startRows(home, { owner, start }) }
    : await inherited?.(owner);
  await markUnknownArtifacts(home);
  await home.rememberStore();
  const engine = new Engine({ store: home.store, artifacts: home.artifacts });
  const runFacts = {
    id: owner.run,
    home: owner.home,
    packages: { deno: Deno.version.deno, ...thisRelease() },
  };
  const head = await engine.create(definition, config, { ...rest, ...runFacts, prefix });
  // Afterwards, so the run of a directory is always in a journal.
  await claimDirectories(home, head, { make: true });
  // An engine marks it again, and says what is in the way.
  await new JournalMarking(home, { run: head.id, say: () => {} }).mark();
  return head;
}

/**
 * Executes a recorded run to its end: claims it, boots its workers while the journal replays, and
 * stops them however it ends. The only way to execute a run, for commands, `serve` and scripts.
 * `head`: the head before the claim.
 */
export async function executeRun<T>(
  home: Home,
  run: { head: RunHead; graph: Graph<T> },
  options: SessionOptions = {},
): Promise<Outcome<T>> {
  try {
    return await execute(home, run, options);
  } catch (error) {
    // Nothing had started: an environment was being created, or what the run needs looked for.
    const { drain } = options;
    const isStop = error instanceof DrainedError || error === drain?.reason;
    if (drain?.aborted && isStop) return { status: "interrupted" };
    throw error;
  }
}

async function execute<T>(
  home: Home,
  { head, graph }: { head: RunHead; graph: Graph<T> },
  options: SessionOptions,
): Promise<Outcome<T>> {
  const run = head.id;
  const { drain, accept, claimed, preempted, onSetup } = options;
  const logAs = (key: string) => (text: string) =>
    options.onEvent?.({ type: "log", run, key, text, at_ms: Date.now() });
  const say = logAs("");
  const accepted = await takeOver(home, head, { say, accept });
  const owner = await home.owner(run);
  const settings = [...await changedSettings(home.store, head), ...options.settings ?? []];
  const config = withSettings(recordedConfig(head), settings);
  const found = await foundAtHub(home, { head, config }, { ...options, say });
  const rows = options.rows ?? await checkedRows(home, { head, config }, options);
  const faults = faultsOf(home, run);
  const { blocks, recorded, requested } = await blocksOf(home, { head, config }, options);
  const onLeaving = () => saveNow();
  const restart = restartCause(head);
  const groupOptions = { run, blocks, recorded, faults, options, restart, onLeaving };
  const groups = blocks && makeGroups(home, { ...groupOptions, blocks });
  const owns = (epoch: number) => stillOwns(home.store, run, epoch);
  const metrics = new MetricsFile(home, { head, owns });
  const marking = new JournalMarking(home, { run, say });
  const trackers = new Trackers(home, { head, config, owns, say, onSetup, signal: drain });
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
      for (const listener of [metrics, marking, trackers]) listener.on(event);
      options.onEvent?.(event);
    },
  });
  const owned = async (owning: number) => {
    epoch = owning;
    await record([...accepted, ...settingsRows(options.settings ?? []), ...requested, ...found]);
    groups?.start(epoch);
  };
  const saveNow = (): Promise<void> =>
    saveBeforeEnd(groups?.trainers ?? [], { record, log: logAs(PREEMPTED) });
  const ends = {
    closeMetrics: () => metrics.close(),
    stopWorkers: async () => await groups?.stop(),
  };
  const letGo = orderlyEnd({ drain, preempted, saveNow, ...ends });
  try {
    return await engine.execute(run, graph, {
      earlier: earlierConfigs(graph.config, settings),
      drain,
      accept,
      claimed,
      owned,
      letGo,
      beforeEnd: () => metrics.flush(),
    });
  } finally {
    await letGo();
    await marking.mark();
    await trackers.close(() => trackedEnd(home, head), preempted?.() ? 0 : undefined);
    await removeLeftovers(home, run, say);
  }
}

/** The worker blocks of this session, and what is recorded because of the current request. */
async function blocksOf(
  home: Home,
  { head, config }: { head: RunHead; config: Record<string, unknown> },
  { replan = {}, settings = [], hosts }: SessionOptions,
) {
  const earlier = await residentRows(home.store, head);
  const { blocks, requested } = plannedBlocks(workerBlocks(config), earlier, replan);
  // What this machine lacks is bad input, reported immediately. Named hosts announce theirs.
  const isChanged = settings.length > 0 || requested.length > 0;
  if (blocks && isChanged && !hosts) placeGpus([...plannedGroups(blocks).values()]);
  return { blocks, recorded: [...earlier, ...requested], requested };
}

function faultsOf(home: Home, run: string): Faults {
  return Faults.parse(Deno.env.get("HOLDFAST_FAULT"), {
    dir: `${home.runDir(run)}/faults`,
    place: "engine",
    roles: ROLES.map(({ name }) => name),
    events: Deno.env.get("HOLDFAST_EVENTS"),
  });
}

/**
 * From here on the run's directories belong to this home; damaged files in them are recreated.
 * Returns what is recorded if the run was another release's.
 */
async function takeOver(
  home: Home,
  head: RunHead,
  { say, accept }: { say: (text: string) => void; accept?: boolean },
): Promise<NewRow[]> {
  const accepted = hasEnded(head) ? [] : await checkRelease(home.store, head, { accept });
  const damaged = home.damagedFacts(head.id);
  await refuseOtherHome(home, head);
  await refuseOlderJournal(home, head.id);
  for (const path of damaged) say(`${path} is damaged: it is recreated from the record`);
  await claimDirectories(home, head, { make: true });
  await home.rememberStore();
  return accepted;
}

/** The rows that record what this run has of the hub, which is then in the cache of this host. */
async function foundAtHub(
  home: Home,
  run: { head: RunHead; config: Partial<Config> },
  { onSetup, drain, say }: Pick<SessionOptions, "onSetup" | "drain"> & {
    say: (text: string) => void;
  },
): Promise<NewRow[]> {
  const fetchOptions = { onSetup, say, signal: drain };
  const { models, rows } = await presentModels(home.store, run, fetchOptions);
  if (run.head.epoch === 0) await checkModelCode(run.config, { ...fetchOptions, models });
  const data = await presentData(home.store, run, fetchOptions);
  return [...rows, ...data.rows];
}

async function recordAs(
  home: Home,
  { run, epoch }: { run: string; epoch: number },
  rows: NewRow[],
): Promise<void> {
  if (rows.length === 0) return;
  const { fenced } = await home.store.append(run, epoch, rows);
  if (fenced) {
    throw new FencedError(`Cannot record in run '${run}' because another engine owns it`, {
      run,
      epoch,
    });
  }
}

/** The configuration's rows. Before the first epoch its rewards are checked with them. */
async function checkedRows(
  home: Home,
  { head, config }: { head: RunHead; config: Partial<Config> },
  { onSetup, onEvent, drain }: SessionOptions,
): Promise<RowTables> {
  const say = (text: string) =>
    onEvent?.({ type: "log", run: head.id, key: "", text, at_ms: Date.now() });
  const rows = await rowTables(config, { home: home.dir, say });
  if (head.epoch > 0) return rows;
  // A fork keeps its parent's rows, even if they lack something.
  const scored = head.parent === null ? rows : {};
  await checkRewards(config, { rows: scored, onSetup, signal: drain });
  return rows;
}

/** An engine that stops in order releases the run. */
function restartCause({ owner, epoch, parent }: RunHead): RestartCause {
  if (owner !== null) return "engine_lost";
  return epoch === 0 && parent !== null ? "fork" : "resume";
}

type GroupContext = {
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
  { run, blocks, recorded, faults, restart, options, onLeaving }: GroupContext,
): WorkerGroups {
  return new WorkerGroups({
    run,
    home: home.dir,
    blocks,
    artifacts: home.artifacts,
    kept: home.kept,
    recorded,
    restart,
    python: (kind, userPython) =>
      ensureEnvironment(kind, {
        user_python: userPython,
        onProgress: options.onSetup,
        signal: options.drain,
      }),
    onEvent: options.onWorkers,
    hosts: options.hosts,
    onFrame: (phase) => void faults.at("frame", phase),
    owns: (epoch) => stillOwns(home.store, run, epoch),
    isRecorded: (key) => isRecorded(home.store, run, key),
    onLeaving,
  });
}

/** Files and parts of data that are in memory at once. */
const DATA_SLOTS = 4;

/** A task of a role occupies one of its groups. Trainers take turns by themselves. */
function workerSlots(groups: WorkerGroups | null): Record<string, number> {
  const roles = [...groups?.byRole ?? []].filter(([role]) => role !== trainerRole);
  const slots = roles.map(([{ name }, workers]) => [name, workers.count || 1]);
  return { data: DATA_SLOTS, ...Object.fromEntries(slots) };
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
