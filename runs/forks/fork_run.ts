import {
  type ArtifactStore,
  canonicalJson,
  checkRunId,
  type DirectoryOwner,
  forkedLoop,
  type GraphDefinition,
  InvalidInputError,
  type NewRow,
  newRunId,
  type Prefix,
  prefixOf,
  recordedValue,
  RemovalRefusedError,
  removeTree,
  RUN_ID,
  type RunHead,
  writeOwner,
} from "../../engine/mod.ts";
import {
  type Config,
  overridden,
  parseConfig,
  parseOverride,
  withSettings,
} from "../../configs/mod.ts";
import {
  recordedRows,
  Replan,
  type TrainerConfig,
  type ValueModelConfig,
  VersionChain,
} from "../../workers/mod.ts";
import { closedRound } from "./carried_versions.ts";
import { type Changing, fixedByPrefix, readsOtherRows } from "./fixed_by_prefix.ts";
import type { Home } from "../home/home.ts";
import { ancestors, residentRows } from "./lineage.ts";
import { linkedCheckpoint } from "./linked_checkpoint.ts";
import { Rows, SHIPPED } from "../../flows/mod.ts";
import { refuseOtherHome } from "../home/run_directories.ts";
import { recordedDefinition } from "../session/run_graph.ts";
import { slotsOf } from "../session/serve_runs.ts";
import {
  changedSettings,
  earlierConfigs,
  graphConfig,
  recordedConfig,
  settingsRows,
} from "../session/settings.ts";
import { pinnedData, pinnedModels } from "../session/hub_models.ts";
import { createRun } from "../session/session.ts";
import { startOf } from "../start/start_note.ts";
import { replannedBlocks } from "../session/worker_blocks.ts";

/** Where a fork leaves its parent, and what differs from there on. */
export type ForkRunOptions = {
  /** The last inherited round; 0: none. Counted in the graph's last loop, or in `loop`. */
  round: number;
  loop?: string;
  /** `a.b=c`: what differs from the parent's configuration from the next round on. */
  overrides?: readonly string[];
  /** The directory that relative paths in overrides start from. */
  cwd?: string;
  id?: string;
  /** Fork even if another release of Holdfast has recorded the run. */
  accept?: boolean;
  queue?: string | null;
  priority?: number;
  /** Slots that it holds while it runs; absent: what its worker blocks request. */
  needs?: Record<string, number>;
};

/** The run may drop a checkpoint while it is being linked: then there is a newer one. */
const LINK_TRIES = 5;

/**
 * Records a run that continues from a closed round of an existing one. It starts nothing. Its
 * versions up to that round are the parent's, by reference; the checkpoint that they are rebuilt
 * from is kept for it as links to the same files.
 * @throws {InvalidInputError} If the round has not closed, or an override would change what the
 *   prefix has fixed.
 */
export async function forkRun(home: Home, run: RunHead, options: ForkRunOptions): Promise<RunHead> {
  const { queue, priority } = options;
  const id = options.id === undefined ? newRunId(run.name) : checkRunId(options.id);
  await refuseOtherHome(home, run);
  const collected = await timesCollected(home, run);
  const { definition, config, prefix, settings } = await planFork(home, run, options);
  const name = (config as Partial<Config>).name ?? run.name;
  const needs = options.needs ?? slotsOf(withSettings(config as Config, settings));
  const child = {
    id,
    name,
    entry: run.entry,
    queue,
    priority,
    needs,
    inherited: async (owner: DirectoryOwner) => {
      const checkpoints = await keepCheckpoints(home, { owner, prefix });
      const rows = [...prefix.rows, ...settingsRows(settings), ...checkpoints];
      return { parent: prefix.parent, rows };
    },
  };
  const head = await createRun(home, definition as GraphDefinition, { config, ...child });
  if (await timesCollected(home, run) === collected) return head;
  await home.store.request(id, "cancel");
  throw new InvalidInputError(
    `Cannot fork run '${run.id}' while its rows are being collected: try again`,
    {
      run: run.id,
    },
  );
}

/**
 * What a fork would start with. `settings`: what its worker processes receive. Only reads. @throws
 * Like `forkRun`.
 */
export async function planFork(
  home: Home,
  run: RunHead,
  options: Pick<ForkRunOptions, "round" | "loop" | "overrides" | "cwd" | "accept">,
) {
  const { round, overrides = [] } = options;
  await refuseBeforeStart(home, run, round);
  refuseFlow(run, { before: recordedConfig(run), overrides });
  const { definition, config: known } = await recordedDefinition(home.store, run, options);
  const changed = await changedSettings(home.store, run);
  const before = definition.build(graphConfig(known, changed)).config as Record<string, unknown>;
  const recorded = await replannedConfig(home, { run, before }, round);
  const child = await childConfig(run, { recorded, overrides, cwd: options.cwd ?? Deno.cwd() });
  const models = await pinnedModels(child, { download: false });
  const { config } = await pinnedData(models.config, { download: false });
  const graph = definition.build(config);
  const loop = forkedLoop({ run, graph, loop: options.loop }).name;
  const after = graph.config as Record<string, unknown>;
  const changing = { schema: definition.config, before, after, loop, round };
  refuseFixed(run, changing);
  const reading = { store: home.store, artifacts: home.artifacts };
  const prefix = await prefixOf(reading, {
    run,
    graph,
    resolved: before,
    earlier: earlierConfigs(before, changed),
    loop,
    round,
    changed: readsOtherRows(changing) ? [Rows.name] : [],
    continues: canonicalJson(before.stop ?? null) !== canonicalJson(after.stop ?? null),
    overrides,
  });
  const settings = changed.filter(({ path, read_by }) =>
    read_by === "workers" && !isOverridden(path, overrides)
  );
  return { definition, config, prefix, loop, settings };
}

/** @throws {InvalidInputError} If the round is one of the run that this one started from. */
async function refuseBeforeStart({ store }: Home, run: RunHead, round: number): Promise<void> {
  const start = await startOf(store, run);
  if (start === null || round >= start.round) return;
  throw new InvalidInputError(
    `Cannot fork run '${run.id}' at round ${round} because it started after round ${start.round} ` +
      `of run '${start.run}'. Fix: fork that run, or from round ${start.round} on`,
    { run: run.id, round },
  );
}

/** Whether an override sets this setting, or a block around it. */
function isOverridden(path: string, overrides: readonly string[]): boolean {
  const steps = overrides.map(parseOverride).flatMap((override) =>
    "path" in override ? [override.path] : []
  );
  return steps.some((overridden) => `${path}.`.startsWith(`${overridden.join(".")}.`));
}

/**
 * `gc` records that it removes rows, then looks for forks: if it races with a new fork, at least
 * one sees the other.
 */
async function timesCollected(home: Home, run: RunHead): Promise<number> {
  const runs = [run.id, ...(await ancestors(home.store, run)).map((ancestor) => ancestor.run)];
  const notes = await Promise.all(runs.map((id) => home.store.read(id, { kinds: ["note/gc"] })));
  return notes.flat().length;
}

/**
 * The parent's configuration with the numerics that it had after `round`: a child's overrides come
 * after its replans.
 */
async function replannedConfig(
  home: Home,
  { run, before }: { run: RunHead; before: Record<string, unknown> },
  round: number,
): Promise<Record<string, unknown>> {
  const config = before as { trainer?: TrainerConfig; value_model?: ValueModelConfig };
  if (config.trainer === undefined) return config;
  const rows = await home.store.read(run.id, { kinds: ["note/replan"] });
  const replans = rows.map((row) => Replan.parse(recordedValue(row)))
    .filter((replan) => replan.round === null || replan.round <= round);
  return replannedBlocks(config, replans);
}

/** `recorded` with the overrides, checked like the configuration of a new run. */
export async function childConfig(
  run: RunHead,
  { recorded, overrides, cwd }: {
    recorded: Record<string, unknown>;
    overrides: readonly string[];
    cwd: string;
  },
): Promise<object> {
  if (!run.entry.startsWith(SHIPPED)) return overridden(recorded, overrides) as object;
  const text = JSON.stringify(recorded, null, 2);
  return (await parseConfig(text, { file: `run ${run.id}`, overrides, cwd })).config;
}

/**
 * A different flow means a different graph and configuration, so it is reported before those are
 * checked.
 */
function refuseFlow(
  run: RunHead,
  { before, overrides }: { before: { flow?: unknown }; overrides: readonly string[] },
) {
  const others = overrides.map(parseOverride).filter((override) =>
    "path" in override && override.path.join(".") === "flow" && override.value !== before.flow
  );
  if (others.length === 0 || before.flow === undefined) return;
  throw new InvalidInputError(
    `Cannot fork run '${run.id}' with ${
      others[0]!.text
    } because a fork keeps its parent's graph: start a new run`,
    { run: run.id },
  );
}

/** @throws {InvalidInputError} Naming every fixed setting that the child would change. */
function refuseFixed(run: RunHead, changing: Changing): void {
  const fixed = fixedByPrefix(changing);
  if (fixed.length === 0) return;
  const { round, loop } = changing;
  throw new InvalidInputError(
    `Cannot fork run '${run.id}' at round ${round} of '${loop}' because its prefix has fixed:\n` +
      `${fixed.map(({ path, why }) => `  ${path}: ${why}`).join("\n")}\n` +
      "Leave it as it is, or start a new run",
    { run: run.id, fixed: fixed.map(({ path }) => path) },
  );
}

/** Links the checkpoints from which the child's first versions are rebuilt. Returns their rows. */
async function keepCheckpoints(
  home: Home,
  { owner, prefix }: { owner: DirectoryOwner; prefix: Prefix },
): Promise<NewRow[]> {
  const checkpointsDir = home.checkpointsDir(owner.run);
  const versions = await carriedVersions(home.artifacts, prefix);
  for (let tries = 1;; tries++) {
    const parent = (await home.store.head(prefix.parent.run))!;
    const recorded = recordedRows(await residentRows(home.store, parent));
    const chain = new VersionChain(home.artifacts, recorded);
    const routes = await Promise.all(versions.map((version) => chain.routeTo(version)));
    const needed = new Map(
      routes.flatMap(({ start: { checkpoint } }) =>
        checkpoint ? [[checkpoint.dir, checkpoint]] : []
      ),
    );
    try {
      // One after the other, so none is being linked when a failed attempt is cleaned up.
      const rows: NewRow[] = [];
      if (needed.size > 0) writeOwner(checkpointsDir, owner);
      for (const one of needed.values()) {
        const linked = await linkedCheckpoint(one, checkpointsDir, { home: home.dir, owner });
        rows.push({ kind: "note/checkpoint", key: one.version, value: canonicalJson(linked) });
      }
      return rows;
    } catch (error) {
      // It contains foreign files, so all of it stays.
      if (error instanceof RemovalRefusedError) throw error;
      // The error matters more.
      await removeTree(checkpointsDir, { home: home.dir, named: RUN_ID, owner }).catch(() => {});
      if (!(error instanceof Deno.errors.NotFound) || tries === LINK_TRIES) throw error;
    }
  }
}

/** Versions of the policies that the loop's closed rounds carry. */
export async function carriedVersions(
  artifacts: ArtifactStore,
  { loop, rows }: Pick<Prefix, "loop" | "rows">,
): Promise<string[]> {
  const rounds = await Promise.all(rows.map((row) => closedRound(artifacts, row)));
  return [...new Set(rounds.flatMap((round) => round?.loop === loop ? round.versions : []))];
}
