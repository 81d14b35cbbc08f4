import { basename, dirname, isAbsolute, normalize } from "node:path";
import {
  type ArtifactStore,
  BadDataError,
  canonicalJson,
  checkRunId,
  type DirectoryOwner,
  forkedLoop,
  type GraphDefinition,
  InvalidInputError,
  isNamed,
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
} from "../engine/mod.ts";
import { AlgorithmChoice, type Refill, refillOf } from "../algs/mod.ts";
import { type Config, overridden, parseConfig, parseOverride, valueAt, withSettings } from "../configs/mod.ts";
import {
  CheckpointNote,
  recordedRows,
  Replan,
  type TrainerConfig,
  type ValueModelConfig,
  VersionChain,
} from "../workers/mod.ts";
import { closedRound } from "./carried_versions.ts";
import type { Home } from "./home.ts";
import { ancestors, residentRows } from "./lineage.ts";
import { OWN_NAMES, SHIPPED } from "../flows/mod.ts";
import { refuseOtherHome, refuseUsed } from "./run_directories.ts";
import { recordedDefinition } from "./run_graph.ts";
import { slotsOf } from "./serve_runs.ts";
import { changedSettings, earlierConfigs, graphConfig, settingsRows } from "./settings.ts";
import { createRun, replannedBlocks } from "./session.ts";

/** Where a fork leaves its parent, and what differs from then on. */
export type ForkRunOptions = {
  /** The last round that is taken over; 0: none. Counted in the graph's last loop, or in `loop`. */
  round: number;
  loop?: string;
  /** `a.b=c`: what differs from the parent's configuration from the next round on. */
  overrides?: readonly string[];
  /** What relative paths in overrides start from. */
  cwd?: string;
  id?: string;
  queue?: string | null;
  priority?: number;
  /** Slots that it holds while it runs; without them, what its worker blocks ask for. */
  needs?: Record<string, number>;
};

/** A checkpoint may be dropped by its run while it is being linked: then there is a newer one. */
const LINK_TRIES = 5;
/**
 * The start's optimizer is only its first versions' setting; what comes after the prefix is trained with the child's. What was
 * found of held-out pairs before the first round stands, whatever the loss is later.
 */
const KEEPS = ["bound_rows", "prepare_policy", "prepare_critic", "prepare_reference", "score_pairs", "evaluate_pairs"];
/** Rounds of the prefix were made with the algorithm as the parent has recorded it, those after it with the child's: which may learn more beside the policy. */
const ANEW = ["open_algorithm", "prepare_critic", "prepare_reference"];
/** Its input names a split, not the files of it. */
const OPENS_ROWS = ["open_data"];

/**
 * Records a run that continues from a closed round of an existing one. It starts nothing. Its versions up to there are the
 * parent's, by reference; the checkpoint that they are rebuilt from is kept for it, as links to the same files.
 * @throws {InvalidInputError} If the round has not closed, or an override would change what the prefix has fixed.
 */
export async function forkRun(home: Home, run: RunHead, options: ForkRunOptions): Promise<RunHead> {
  const { queue, priority } = options;
  const id = options.id === undefined ? newRunId(run.name) : checkRunId(options.id);
  await refuseOtherHome(home, run);
  const collected = await timesCollected(home, run);
  const { definition, config, prefix, settings } = await planFork(home, run, options);
  if (await home.store.head(id) !== null) {
    throw new InvalidInputError(`Cannot create run '${id}' because there is one already: choose another --id`, {
      run: id,
    });
  }
  const owner = await home.owner(id);
  refuseUsed(home, owner);
  const checkpoints = await keepCheckpoints(home, { owner, prefix });
  const rows = [...prefix.rows, ...settingsRows(settings), ...checkpoints];
  const name = (config as Partial<Config>).name ?? run.name;
  const needs = options.needs ?? slotsOf(withSettings(config as Config, settings));
  const child = { id, name, entry: run.entry, queue, priority, needs, prefix: { parent: prefix.parent, rows } };
  const head = await createRun(home, definition as GraphDefinition, { config, ...child });
  if (await timesCollected(home, run) === collected) return head;
  await home.store.request(id, "cancel");
  throw new InvalidInputError(`Cannot fork run '${run.id}' while its rows are being collected: try again`, {
    run: run.id,
  });
}

/** What a fork would start with. `settings`: what its worker processes receive. Reads only. @throws As `forkRun`. */
export async function planFork(
  home: Home,
  run: RunHead,
  options: Pick<ForkRunOptions, "round" | "loop" | "overrides" | "cwd">,
) {
  const { round, overrides = [] } = options;
  refuseFlow(run, { before: JSON.parse(run.config) as { flow?: unknown }, overrides });
  const { definition, config: known } = await recordedDefinition(run);
  const changed = await changedSettings(home.store, run);
  const before = definition.build(graphConfig(known, changed)).config as Record<string, unknown>;
  const recorded = await replannedConfig(home, { run, before }, round);
  const config = await childConfig(run, { recorded, overrides, cwd: options.cwd ?? Deno.cwd() });
  const graph = definition.build(config);
  const loop = forkedLoop({ run, graph, loop: options.loop }).name;
  refuseFixed(run, { before, after: graph.config as Record<string, unknown>, loop, round });
  const reading = { store: home.store, artifacts: home.artifacts };
  const prefix = await prefixOf(reading, {
    ...{ run, graph, resolved: before, earlier: earlierConfigs(before, changed), loop, round },
    ...{ keeps: KEEPS, anew: ANEW, fresh: readsOtherRows(before, graph.config) ? OPENS_ROWS : [], overrides },
  });
  const settings = changed.filter(({ path, read_by }) => read_by === "workers" && !isSaid(path, overrides));
  return { definition, config, prefix, loop, settings };
}

/** Whether an override sets this setting, or a block around it. */
function isSaid(path: string, overrides: readonly string[]): boolean {
  const steps = overrides.map(parseOverride).flatMap((override) => "path" in override ? [override.path] : []);
  return steps.some((said) => `${path}.`.startsWith(`${said.join(".")}.`));
}

/** `gc` records that it takes rows, then looks for forks: of it and one that begins meanwhile, one sees the other. */
async function timesCollected(home: Home, run: RunHead): Promise<number> {
  const runs = [run.id, ...(await ancestors(home.store, run)).map((ancestor) => ancestor.run)];
  const notes = await Promise.all(runs.map((id) => home.store.read(id, { kinds: ["note/gc"] })));
  return notes.flat().length;
}

/** The parent's configuration with the numerics that it had after `round`: a child's overrides come after its replans. */
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

/** `recorded` with the overrides, checked as the configuration of a new run is. */
export async function childConfig(
  run: RunHead,
  { recorded, overrides, cwd }: { recorded: Record<string, unknown>; overrides: readonly string[]; cwd: string },
): Promise<unknown> {
  if (!run.entry.startsWith(SHIPPED)) return overridden(recorded, overrides);
  const text = JSON.stringify(recorded, null, 2);
  return (await parseConfig(text, { file: `run ${run.id}`, overrides, cwd })).config;
}

/** A different flow is a different graph and configuration: reported before those are checked. */
function refuseFlow(run: RunHead, { before, overrides }: { before: { flow?: unknown }; overrides: readonly string[] }) {
  const others = overrides.map(parseOverride).filter((override) =>
    "path" in override && override.path.join(".") === "flow" && override.value !== before.flow
  );
  if (others.length === 0 || before.flow === undefined) return;
  throw new InvalidInputError(
    `Cannot fork run '${run.id}' with ${others[0]!.text} because a fork keeps its parent's graph: start a new run`,
    { run: run.id },
  );
}

type Changing = { before: Record<string, unknown>; after: Record<string, unknown>; loop: string; round: number };
type Fixed = { path: string; why: string; when?: (changing: Changing) => boolean };

const DATA = "the draws of the prefix came from it, and the next ones continue from there";
const COUNT = "the next draw depends on it";
const REDO = "the prefix's versions are rebuilt with it, bit for bit";
/** Which parameters are decayed is part of the optimizer state's layout. */
const decays = (config: unknown, block: string) => valueAt(config, [...block.split("."), "weight_decay"]) !== 0;
const turnsDecay = (block: string, loop?: string) => ({ before, after, ...at }: Changing) =>
  at.round > 0 && (loop ?? at.loop) === at.loop && decays(before, block) !== decays(after, block);
const inPrefix = ({ round }: Changing) => round > 0;
const inLoop = (name: string) => ({ loop, round }: Changing) => loop === name && round > 0;

const inPreference = ({ before, round }: Changing) => before.flow === "preference" && round > 0;
/** The rounds of a warm-up are part of any prefix of the rounds after it. */
const isTaught = ({ before, loop, round }: Changing) => round > 0 || (loop === "round" && "warmup" in before);

/** How rounds are filled, if they are. A custom graph may mean something else by `algorithm`. */
function refillIn({ algorithm }: Record<string, unknown>): Refill | null {
  const { data } = AlgorithmChoice.safeParse(algorithm);
  return data === undefined ? null : refillOf(data);
}

/** Whether rounds hand groups on to the next. */
function handsOn(config: Record<string, unknown>): boolean {
  const refill = refillIn(config);
  return refill !== null && refill.surplus !== "discard";
}

function refreshes(config: Record<string, unknown>): boolean {
  return typeof valueAt(config, ["reference", "refresh_rounds"]) === "number";
}

function steers(config: Record<string, unknown>): boolean {
  return typeof valueAt(config, ["algorithm", "kl_target"]) === "number";
}

/** What a prefix has fixed, and why. With nothing trained in it, only what the start was made of. */
const FIXED: readonly Fixed[] = [
  { path: "seed", why: "everything random in the prefix came from it" },
  { path: "model", why: "every version of the prefix descends from it" },
  { path: "data", why: DATA, when: inPrefix },
  { path: "task", why: DATA, when: isTaught },
  {
    path: "evaluate.problems",
    why: "they were held out of the rows to train on",
    when: (changing) => "task" in changing.before && isTaught(changing),
  },
  { path: "evaluate", why: "the start was evaluated on them", when: inPreference },
  { path: "reference", why: "held-out pairs were scored with it", when: inPreference },
  { path: "warmup", why: "the warm-up is part of the prefix", when: ({ loop }) => loop === "round" },
  { path: "warmup.rows_per_round", why: COUNT, when: inLoop("step") },
  { path: "online.prompts_per_round", why: COUNT, when: inLoop("round") },
  { path: "pairs_per_round", why: COUNT, when: inLoop("round") },
  { path: "prompts_per_round", why: COUNT, when: inPrefix },
  {
    path: "algorithm",
    why: "its rounds drew until they were full, and only an algorithm that does so too can continue their draws",
    when: (changing) =>
      inLoop("round")(changing) && refillIn(changing.before) !== null && refillIn(changing.after) === null,
  },
  { path: "rows_per_round", why: COUNT, when: inPrefix },
  ...[
    ["trainer.optimizer"],
    ["value_model.optimizer"],
    ["warmup.optimizer", "step"],
    ["online.optimizer", "round"],
  ].map(([block, loop]) => ({
    path: `${block}.weight_decay`,
    why: "turning it on or off changes what the optimizer's state is made of",
    when: turnsDecay(block!, loop),
  })),
  ...["dropout", "offload", ...["rank", "alpha", "dropout", "targets", "quantize"].map((name) => `lora.${name}`)].map(
    (name) => ({ path: `trainer.${name}`, why: REDO, when: inPrefix }),
  ),
  {
    path: "reference.path",
    why: "its rounds hand a reference on that was refreshed, or is to be",
    when: (changing) => inLoop("round")(changing) && refreshes(changing.before) && refreshes(changing.after),
  },
  {
    path: "algorithm.kl_coef",
    why: "its rounds carry the steered weight; set algorithm.kl_target: null to use a fixed weight",
    when: (changing) => inLoop("round")(changing) && steers(changing.before) && steers(changing.after),
  },
  ...["trainer", "value_model"].flatMap((block) =>
    ["engine", "zero", "dtype", "threads", "device", "gradient_checkpointing"].map((name) => ({
      path: `${block}.${name}`,
      why: REDO,
      when: inPrefix,
    }))
  ),
  { path: "value_model.path", why: "every version of the prefix's value model descends from it", when: inPrefix },
];

function textAt(config: unknown, path: string): string {
  return canonicalJson(valueAt(config, path.split(".")) ?? null);
}

/** Where a configuration says what rows there are. */
function readsOtherRows(before: unknown, after: unknown): boolean {
  return ["data", "task", "evaluate.problems"].some((path) => textAt(before, path) !== textAt(after, path));
}

/** @throws {InvalidInputError} Naming everything that the prefix has fixed and the child would have otherwise. */
function refuseFixed(run: RunHead, changing: Changing): void {
  const { before, after, loop, round } = changing;
  const changed = FIXED.filter(({ path, when }) =>
    (when?.(changing) ?? true) && textAt(before, path) !== textAt(after, path)
  );
  const lines = changed.map(({ path, why }) => `  ${path}: ${why}`);
  const rounds = roundsOf(after, loop);
  if (rounds !== undefined && rounds.value !== roundsOf(before, loop)?.value) {
    const { path, value } = rounds;
    if (value < round) lines.push(`  ${path}: is ${value}, and the prefix has ${round} rounds already`);
    if (value === round && handsOn(before)) lines.push(`  ${path}: is ${value}, and round ${round} may hand groups on`);
  }
  if (lines.length === 0) return;
  throw new InvalidInputError(
    `Cannot fork run '${run.id}' at round ${round} of '${loop}' because its prefix has fixed:\n${lines.join("\n")}\n` +
      "Leave it as it is, or start a new run",
    { run: run.id, fixed: changed.map(({ path }) => path) },
  );
}

/** Where a configuration says how many rounds a loop has. */
function roundsOf(config: Record<string, unknown>, loop: string): { path: string; value: number } | undefined {
  const block = { step: "warmup", round: "online" }[loop];
  const paths = [...(block ? [`${block}.rounds`] : []), "rounds"];
  for (const path of paths) {
    const value = valueAt(config, path.split("."));
    if (typeof value === "number") return { path, value };
  }
  return undefined;
}

/** Links the checkpoints from which the child's first versions are rebuilt. Returns their rows. */
async function keepCheckpoints(
  home: Home,
  { owner, prefix }: { owner: DirectoryOwner; prefix: Prefix },
): Promise<NewRow[]> {
  const own = home.checkpointsDir(owner.run);
  const versions = await carriedVersions(home.artifacts, prefix);
  for (let tries = 1;; tries++) {
    const parent = (await home.store.head(prefix.parent.run))!;
    const recorded = recordedRows(await residentRows(home.store, parent));
    const chain = new VersionChain(home.artifacts, recorded);
    const routes = await Promise.all(versions.map((version) => chain.routeTo(version)));
    const needed = new Map(
      routes.flatMap(({ start: { checkpoint } }) => checkpoint ? [[checkpoint.dir, checkpoint]] : []),
    );
    try {
      const rows: NewRow[] = []; // One after the other: none is being linked any more when a failed try is cleared away.
      if (needed.size > 0) writeOwner(own, owner);
      for (const one of needed.values()) rows.push(await linked(one, own, { home: home.dir, owner }));
      return rows;
    } catch (error) {
      if (error instanceof RemovalRefusedError) throw error; // Somebody has put something there: it all stays.
      await removeTree(own, { home: home.dir, named: RUN_ID, owner }).catch(() => {}); // The error matters more.
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

/** A row may come from another user of the store: what it names must be inside the child's directory. */
function notOurs({ dir }: CheckpointNote, name: string): BadDataError {
  return new BadDataError(
    `Cannot keep checkpoint '${dir}' because '${name}' is not a name that a checkpoint has. Fix: fork from another round`,
    { dir, name },
  );
}

/**
 * The child's own checkpoint of the same files: its parent may drop the other. It begins empty: in what a killed fork has
 * left there may be links by now.
 */
async function linked(checkpoint: CheckpointNote, checkpoints: string, of: { home: string; owner: DirectoryOwner }) {
  const name = basename(checkpoint.dir);
  if (!isNamed(name, OWN_NAMES.checkpoint)) throw notOurs(checkpoint, name);
  const dir = `${checkpoints}/${name}`;
  await removeTree(dir, { ...of, named: OWN_NAMES.checkpoint });
  await Deno.mkdir(dir);
  const folders = new Set([checkpoints, dir]);
  for (const { path } of checkpoint.files) {
    if (isAbsolute(path) || normalize(path).startsWith("..")) throw notOurs(checkpoint, path);
    const folder = dirname(`${dir}/${path}`);
    await Deno.mkdir(folder, { recursive: true });
    folders.add(folder);
    await linkOrCopy(`${checkpoint.dir}/${path}`, `${dir}/${path}`);
  }
  for (const folder of folders) {
    using opened = await Deno.open(folder);
    await opened.sync();
  }
  return { kind: "note/checkpoint" as const, key: checkpoint.version, value: canonicalJson({ ...checkpoint, dir }) };
}

/** A file system without links, or another one, gets a copy. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await Deno.link(from, to);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.AlreadyExists) throw error;
    await Deno.copyFile(from, to);
    using copy = await Deno.open(to);
    await copy.sync();
  }
}
