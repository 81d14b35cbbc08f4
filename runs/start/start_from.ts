/**
 * `start_from`: a new run that continues the rounds of another one from a checkpoint. What it needs
 * of the other run is in its own journal and directory from the beginning: it never reads the other
 * one again, which may be another release's, and may be deleted.
 */
import type { z } from "zod";
import { ConfigError, type Origin, parseStartFrom } from "../../configs/mod.ts";
import type { Optimizer } from "../../data/mod.ts";
import {
  canonicalJson,
  type DirectoryOwner,
  type GraphDefinition,
  InvalidInputError,
  type NewRow,
  RemovalRefusedError,
  removeTree,
  RUN_ID,
  startedLoop,
  type Store,
  writeOwner,
} from "../../engine/mod.ts";
import type { RowTables } from "../../flows/mod.ts";
import { checkpointName, type VersionNote } from "../../workers/mod.ts";
import type { Home } from "../home/home.ts";
import { linkedCheckpoint } from "../forks/linked_checkpoint.ts";
import { Recorded, releaseOf } from "../session/release.ts";
import { rowTables } from "../session/row_tables.ts";
import type { StartNote } from "./start_note.ts";
import { type StartProblem, startProblems } from "./start_problems.ts";
import {
  type StartModel,
  type StartRound,
  startRound,
  type StartSource,
  startSource,
} from "./start_source.ts";

/**
 * What a new run starts from, before anything is recorded or linked.
 * @internal
 */
export type Start = {
  note: StartNote;
  graph_hash: string;
  lag: number;
  carried: Record<string, unknown>;
  models: (StartModel & { optimizer: Optimizer })[];
};

type Starting<In> = {
  config: In;
  /** Its rows, if they were already read. */
  rows?: RowTables;
  /** Where its values come from, for problems. */
  origins?: readonly Origin[];
};
type Optimizers = { trainer: { optimizer: Optimizer }; value_model?: { optimizer: Optimizer } };

/**
 * What a configuration's `start_from` names, and the configuration with the round that it means.
 * Only reads.
 * @throws {ConfigError} With every reason why the run cannot start there.
 */
export async function resolvedStart<In, C, T>(
  home: Home,
  definition: GraphDefinition<In, C, T>,
  starting: Starting<In>,
): Promise<{ config: In; start: Start | null }> {
  const { config, origins = [] } = starting;
  const { start_from } = config as { start_from?: string };
  if (start_from === undefined) return { config, start: null };
  const graph = definition.build(config);
  const from = parseStartFrom(start_from);
  try {
    const source = await startSource(home, from, graph);
    const found = await startRound(home, source, from);
    const after = graph.config as Record<string, unknown>;
    const rows = starting.rows ?? await rowTables(after, { home: home.dir, say: () => {} });
    const whole = { ...source, ...found, schema: definition.config as z.ZodType, after, rows };
    const problems = await startProblems(home.store, whole);
    if (problems.length > 0) throw refusal(problems, origins);
    const note = await noteOf(home.store, { ...source, ...found });
    const { loop: { lag }, carried, models } = { ...source, ...found };
    const trained = models.map((model) => ({ ...model, optimizer: optimizerOf(model, after) }));
    const start = { note, graph_hash: graph.hash, lag, carried, models: trained };
    return { config: { ...config, start_from: `${note.run}@${note.round}` }, start };
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw refusal([{ path: "start_from", message: error.message }], origins);
  }
}

async function noteOf(
  store: Store,
  { head, loop, record: { round, total }, models }: StartSource & StartRound,
): Promise<StartNote> {
  const named = models.map(({ name, policy, checkpoint: { digest } }) => {
    const { version, number, record } = policy;
    return [name, { version, number, record, digest }];
  });
  return {
    run: head.id,
    loop: loop.name,
    round,
    release: Recorded.parse(await releaseOf(store, head)),
    models: Object.fromEntries(named),
    draws: total,
  };
}

/**
 * Each problem at its setting, or at `start_from` if that is a default. A script's configuration is
 * written nowhere.
 */
function refusal(problems: readonly StartProblem[], origins: readonly Origin[]): ConfigError {
  const written = (path: string) =>
    origins.find((one) => one.where !== "" && (isIn(one.path, path) || isIn(path, one.path)))
      ?.where;
  return new ConfigError(problems.map(({ path, message }) => {
    const where = written(path) ?? written("start_from");
    const place = where === undefined ? { where: path, path: "" } : { where, path };
    return { ...place, message, position: null };
  }));
}

/** Whether a setting is this one, or in this block. */
function isIn(path: string, block: string): boolean {
  return `${path}.`.startsWith(`${block}.`);
}

/** The optimizer that a model's state is loaded with; the new run's, which has the same state. */
function optimizerOf({ checkpoint: { group } }: StartModel, config: unknown): Optimizer {
  const { trainer, value_model } = config as Optimizers;
  return (group === "critic" ? value_model : undefined)?.optimizer ?? trainer.optimizer;
}

/**
 * Links the checkpoints into a new run's directory. Returns the first rows of its journal.
 * @throws {InvalidInputError} If the other run has dropped a checkpoint in the meantime.
 */
export async function startRows(
  home: Home,
  { owner, start: { note, carried, models, graph_hash, lag } }: {
    owner: DirectoryOwner;
    start: Start;
  },
): Promise<NewRow[]> {
  const checkpointsDir = home.checkpointsDir(owner.run);
  const { run, round, loop: name, draws: total } = note;
  writeOwner(checkpointsDir, owner);
  const versions: NewRow[] = [];
  try {
    // One after the other, so none is being linked when a failed attempt is cleaned up.
    for (const model of models) {
      versions.push(await versionRow(model, checkpointsDir, { home, owner }));
    }
  } catch (error) {
    // It contains foreign files, so all of it stays.
    if (error instanceof RemovalRefusedError) throw error;
    // The error matters more.
    await removeTree(checkpointsDir, { home: home.dir, named: RUN_ID, owner }).catch(() => {});
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new InvalidInputError(
      `Cannot start from round ${round} of run '${run}' because the run has just dropped its ` +
        "checkpoint: try again",
      { run, round },
    );
  }
  const rounds = await startedLoop(home, {
    run: owner.run,
    loop: { name, lag },
    earlier: { round, carried, total, graph_hash },
  });
  return [{ kind: "note/start", key: run, value: canonicalJson(note) }, ...versions, ...rounds];
}

/** The version that a model starts as, whose checkpoint is the new run's own. */
async function versionRow(
  { policy, checkpoint, optimizer, model_digest }: Start["models"][number],
  checkpointsDir: string,
  { home, owner }: { home: Home; owner: DirectoryOwner },
): Promise<NewRow> {
  const { version, record, number, model_path } = policy;
  const { metric: _, metric_name: __, ...saved } = checkpoint;
  const name = `${checkpointName(policy)}-start-${version.slice(0, 8)}`;
  const linked = await linkedCheckpoint({ ...saved, metric: null }, checkpointsDir, {
    home: home.dir,
    owner,
    name,
  });
  const group = checkpoint.group === undefined ? {} : { group: checkpoint.group };
  const start = { checkpoint: linked, optimizer, model_digest: model_digest ?? undefined };
  const note: VersionNote = { ...group, record, model_path, number, steps: [], start };
  return { kind: "note/version", key: version, value: canonicalJson(note) };
}

/** A script passes the same configuration again: its start is the recorded one. */
export function asStarted<C>(config: C, recorded: unknown): C {
  const [current, known] = [config, recorded].map((one) =>
    (one as { start_from?: string } | null)?.start_from
  );
  return current !== undefined && known?.startsWith(`${current}@`)
    ? { ...config, start_from: known }
    : config;
}
