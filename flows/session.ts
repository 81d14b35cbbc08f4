import { type Config, WorkersConfig } from "../configs/mod.ts";
import { digitsTables, loadRows } from "../data/mod.ts";
import {
  type CreateOptions,
  Engine,
  type EngineEvent,
  type EventListener,
  Faults,
  type Graph,
  type GraphDefinition,
  type Outcome,
  provide,
  type Provided,
  type RunHead,
  stillOwns,
} from "../engine/mod.ts";
import { ensureEnvironment, type EnvironmentProgress, type RestartCause, type WorkersOptions } from "../workers/mod.ts";
import type { Home } from "./home.ts";
import { MetricsFile } from "./metrics_file.ts";
import { Paths, Rewards, Rows, type RowTables, Sampler, Trainer } from "./resources.ts";
import { RESIDENT_KINDS, type WorkerBlocks, WorkerGroups } from "./worker_groups.ts";

export type SessionOptions = {
  /** Once aborted, nothing new starts and the run can be resumed. */
  drain?: AbortSignal;
  /** Go on although the graph is another than the run began with. */
  accept?: boolean;
  /** The head as the claim answered it, if this process has claimed the run already. */
  claimed?: RunHead;
  /** How long the run stays this engine's without a sign of life. */
  lease_ms?: number;
  /** The configuration's rows, if they are read already. */
  rows?: RowTables;
  /** Resources beside the shipped ones, for stages of one's own. */
  resources?: readonly Provided[];
  onEvent?: EventListener;
  onWorkers?: WorkersOptions["onEvent"];
  /** Told while a Python environment is made. */
  onSetup?: (progress: EnvironmentProgress) => void;
};

/** Problems of a `task:` that are held out where the configuration names no number. */
const EVAL_PROBLEMS = 128;

/** The rows of a configuration's `task:` or `data:` block, read once. @throws {DataError} At the first broken row. */
export async function rowTables(config: Partial<Config>): Promise<RowTables> {
  if ("task" in config) {
    const { task, seed = 0, evaluate } = config as Partial<Extract<Config, { flow: "quickstart" }>>;
    return digitsTables({ ...task!, seed, eval_problems: evaluate?.problems ?? EVAL_PROBLEMS });
  }
  const data = (config as { data?: { train?: []; eval?: [] } }).data ?? {};
  const tables: RowTables = {};
  const needs = config.flow === "supervised" ? { needs: "completion" as const } : {};
  if (data.train?.length) tables.train = await loadRows(data.train, needs);
  if (data.eval?.length) tables.eval = await loadRows(data.eval);
  return tables;
}

/** Which worker processes a configuration asks for; null if it has no trainer and no sampler. */
function workerBlocks(config: Record<string, unknown>): WorkerBlocks | null {
  if (!config.trainer || !config.sampler) return null;
  const { trainer, sampler, seed, rollouts } = config as unknown as WorkerBlocks & {
    rollouts?: { reward_processes: number };
  };
  const reward_processes = rollouts?.reward_processes ?? 2;
  const workers = WorkersConfig.parse(config.workers ?? {});
  return { trainer, sampler, seed: seed ?? 0, reward_processes, workers };
}

/** Records a new run. Nothing of it starts. */
export async function createRun<In, C, T>(
  home: Home,
  definition: GraphDefinition<In, C, T>,
  options: { config: NoInfer<In>; entry: string } & Omit<CreateOptions, "entry" | "packages">,
): Promise<RunHead> {
  const { config, ...rest } = options;
  const engine = new Engine({ store: home.store, artifacts: home.artifacts });
  return await engine.create(definition, config, { ...rest, packages: { deno: Deno.version.deno } });
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
  await Deno.mkdir(home.runDir(run), { recursive: true });
  const config = JSON.parse(head.config) as Record<string, unknown>;
  const rows = options.rows ?? await rowTables(config as Partial<Config>);
  const faults = Faults.parse(Deno.env.get("HOLDFAST_FAULT"), {
    dir: `${home.runDir(run)}/faults`,
    place: "engine",
    events: Deno.env.get("HOLDFAST_EVENTS"),
  });
  const blocks = workerBlocks(config);
  const restart = head.owner === null ? "resume" : "engine_lost"; // An engine that stops in order gives the run back.
  const groups = blocks === null ? null : await makeGroups(home, { run, blocks, faults, restart, options });
  const metrics = new MetricsFile(home, { run, owns: (epoch) => stillOwns(home.store, run, epoch) });
  const engine = new Engine({
    store: home.store,
    artifacts: home.artifacts,
    faults,
    lease_ms: options.lease_ms,
    resources: [...resourcesOf(home, { run, rows, groups }), ...(options.resources ?? [])],
    slots: { sampler: blocks?.sampler.replicas ?? 1 },
    onEvent: (event: EngineEvent) => {
      if (event.type === "run_started") groups?.start({ epoch: event.epoch });
      metrics.on(event);
      options.onEvent?.(event);
    },
  });
  const { drain, accept, claimed } = options;
  let stopped: Promise<void> | undefined;
  const letGo = () => stopped ??= metrics.flush().then(() => groups?.stop());
  try {
    return await engine.execute(run, graph, { drain, accept, claimed, letGo });
  } finally {
    await letGo();
  }
}

type Making = {
  run: string;
  blocks: WorkerBlocks;
  faults: Faults;
  restart: RestartCause;
  options: SessionOptions;
};

async function makeGroups(home: Home, { run, blocks, faults, restart, options }: Making): Promise<WorkerGroups> {
  return new WorkerGroups({
    run,
    home: home.dir,
    blocks,
    artifacts: home.artifacts,
    recorded: await home.store.read(run, { kinds: RESIDENT_KINDS }),
    restart,
    python: (kind, own) => ensureEnvironment(kind, { home: home.dir, own, onProgress: options.onSetup }),
    onEvent: options.onWorkers,
    onFrame: (phase) => void faults.at("frame", phase),
  });
}

function resourcesOf(
  home: Home,
  { run, rows, groups }: { run: string; rows: RowTables; groups: WorkerGroups | null },
): Provided[] {
  const dirs = {
    run: home.runDir(run),
    checkpoints: home.checkpointsDir(run),
    publications: `${home.runDir(run)}/publications`,
  };
  const always = [provide(Rows, rows), provide(Paths, dirs)];
  if (groups === null) return always;
  return [
    ...always,
    provide(Trainer, groups.trainer),
    provide(Sampler, groups.sampler),
    provide(Rewards, groups.rewards),
  ];
}
