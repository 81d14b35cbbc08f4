/**
 * Models and data sets of the hub that a configuration names: they get their commits before a run is
 * recorded, so the record says which bytes they were, and a resumed run never meets newer ones.
 */
import { namedFiles, setAt, valueAt } from "../../configs/mod.ts";
import {
  type DatasetPart,
  hubDataset,
  hubDatasetText,
  hubName,
  hubNameText,
  isHubDataset,
} from "../../data/mod.ts";
import {
  canonicalJson,
  InvalidInputError,
  type NewRow,
  recordedValue,
  type RunHead,
  type Store,
} from "../../engine/mod.ts";
import {
  FetchedFiles,
  fetchFromHub,
  type OnEnvironmentProgress,
  runPython,
} from "../../workers/mod.ts";
import { z } from "zod";
import { ancestors } from "../forks/lineage.ts";
import { fetchingPython, trainerPython } from "./trainer_python.ts";

/** Who hears of it. */
type HubOptions = {
  onSetup?: OnEnvironmentProgress;
  /** Ends the search, and the creation of a Python environment for it. */
  signal?: AbortSignal;
  say?: (text: string) => void;
};

/** A model that a configuration names. `hub`: its whole name there. `trusted`: its code may run. */
type NamedModel = Pick<ReturnType<typeof namedFiles>[number], "path" | "text"> & {
  hub: string | null;
  trusted: boolean;
};

function namedModels(config: unknown): NamedModel[] {
  // Without a trainer a custom graph opens no model: what it calls one is its own.
  if (!valueAt(config, ["trainer"])) return [];
  const trusts = valueAt(config, ["model", "trust_remote_code"]) === true;
  return namedFiles(config).filter(({ kind }) => kind === "model").map(({ path, text }) => {
    // A script may name a directory by a relative path; those of files are absolute.
    const name = isDirectory(text) ? null : hubName(text);
    const hub = name === null ? null : hubNameText(name);
    // A reward model is its own: the policy's setting is not about it.
    return { path, text, hub, trusted: trusts && !path.includes("reward") };
  });
}

function isDirectory(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}

/**
 * What a configuration names at the hub. `hub`: its whole text, by which two spellings are the same.
 * `name`: of its repository. `code`: whether its own code may run.
 */
type HubEntry = {
  path: NamedModel["path"];
  hub: string;
  name: string;
  part?: DatasetPart;
  code: boolean;
};

function modelsAtHub(config: unknown): HubEntry[] {
  return namedModels(config).flatMap(({ path, hub, trusted }) =>
    hub === null ? [] : [{ path, hub, name: hub, code: trusted }]
  );
}

function dataAtHub(config: unknown): HubEntry[] {
  return namedFiles(config).flatMap(({ path, kind, text }) => {
    if (kind !== "rows" || !isHubDataset(text)) return [];
    const dataset = hubDataset(text);
    return [{ path, hub: hubDatasetText(dataset), ...dataset, code: false }];
  });
}

/** Each once: two spellings of one revision must not get two commits. */
function eachOnce(entries: HubEntry[]): HubEntry[] {
  const groups = Object.values(Object.groupBy(entries, ({ hub }) => hub)) as HubEntry[][];
  return groups.map((same) => ({ ...same[0]!, code: same.some(({ code }) => code) }));
}

/** As a configuration writes it. */
function textOf({ part }: HubEntry, name: string): string {
  return part === undefined ? name : hubDatasetText({ name, part });
}

type Pinning = HubOptions & { download: boolean };

/**
 * The configuration with the commit of each model of the hub, and these models. With `download`
 * they are then in the cache of this host.
 * @throws {InvalidInputError | InfrastructureError} See {@linkcode fetchFromHub}.
 */
export async function pinnedModels<C>(
  config: C,
  pinning: Pinning,
): Promise<{ config: C; models: FetchedFiles[] }> {
  const { config: pinned, found } = await pinnedEntries(config, modelsAtHub(config), pinning);
  return { config: pinned, models: found };
}

/**
 * The same for its data sets. Their rows can be read once they are downloaded.
 * @throws {DataError} If a source is no name of the hub.
 * @throws {InvalidInputError | InfrastructureError} See {@linkcode fetchFromHub}.
 */
export async function pinnedData<C>(
  config: C,
  pinning: Pinning,
): Promise<{ config: C; data: FetchedFiles[] }> {
  const { config: pinned, found } = await pinnedEntries(config, dataAtHub(config), pinning);
  return { config: pinned, data: found };
}

async function pinnedEntries<C>(
  config: C,
  entries: HubEntry[],
  { download, ...options }: Pinning,
): Promise<{ config: C; found: FetchedFiles[] }> {
  const wanted = eachOnce(entries);
  if (wanted.length === 0) return { config, found: [] };
  const found = await fetched(config as object, wanted, { ...options, download });
  const pinned = entries.reduce<unknown>((so_far, { path, hub }) => {
    const place = wanted.findIndex((one) => one.hub === hub);
    return setAt(so_far, { path, to: found[place]!.name });
  }, config);
  return { config: pinned as C, found };
}

/** Each under the text that a configuration has for it. */
async function fetched(
  config: object,
  entries: (HubEntry & { recorded?: FetchedFiles["files"] | null })[],
  { download, say, onSetup: onProgress, signal }: Pinning,
): Promise<FetchedFiles[]> {
  const wanted = entries.map(({ name, part, code, recorded = null }) => ({
    name,
    part,
    code,
    recorded,
  }));
  const python = await fetchingPython({ ...config }, { onProgress, signal });
  const found = await fetchFromHub(python, wanted, { download, say, signal });
  return found.map((one, i) => ({ ...one, name: textOf(entries[i]!, one.name) }));
}

/** The configuration with the directory of each model, for what reads a model's files now. */
export function withDirectories<C extends object>(config: C, models: readonly FetchedFiles[]): C {
  return namedModels(config).reduce<unknown>((so_far, { path, hub }) => {
    const found = models.find(({ name }) => name === hub);
    return found === undefined ? so_far : setAt(so_far, { path, to: found.directory });
  }, config) as C;
}

/**
 * A script passes the same configuration again: its models and data sets have the commits that the
 * run recorded, if it names the same revisions.
 */
export function asPinned<C>(config: C, recorded: unknown): C {
  const entries = [...modelsAtHub(config), ...dataAtHub(config)];
  return entries.reduce<unknown>((so_far, entry) => {
    const known = String(valueAt(recorded, entry.path));
    const is_same = hubName(entry.name)!.commit === null && withoutCommit(known) === entry.hub;
    return is_same ? setAt(so_far, { path: entry.path, to: known }) : so_far;
  }, config) as C;
}

/** A recorded text as it was asked for; null: it is not of the hub. */
function withoutCommit(text: string): string | null {
  const data = isHubDataset(text) ? hubDataset(text) : null;
  const name = hubName(data?.name ?? text);
  if (name === null) return null;
  const free = hubNameText({ ...name, commit: null });
  return data === null ? free : hubDatasetText({ ...data, name: free });
}

/**
 * Value of a `note/model` or `note/data` row; its key is the text that the configuration has, with
 * the commit.
 */
const HubNote = FetchedFiles.omit({ name: true, directory: true });

type Recorded = { head: RunHead; config: object };

/**
 * Brings the models that a run recorded into the cache of this host, at their commits; without a
 * network if the cache has them. `rows`: record those that are not recorded yet.
 * @throws {InvalidInputError} If a model has no commit.
 */
export async function presentModels(
  store: Store,
  run: Recorded,
  options: HubOptions,
): Promise<{ models: FetchedFiles[]; rows: NewRow[] }> {
  const entries = modelsAtHub(run.config);
  const what = { kind: "note/model", what: "model", pinned: "pinnedModels" } as const;
  const { found, rows } = await present(store, run, { ...options, ...what, entries });
  return { models: found, rows };
}

/**
 * The same for the data sets of a run: what reads its rows finds them then.
 * @throws {InvalidInputError} If a data set has no commit.
 */
export async function presentData(
  store: Store,
  run: Recorded,
  options: HubOptions,
): Promise<{ rows: NewRow[] }> {
  const entries = dataAtHub(run.config);
  const what = { kind: "note/data", what: "data set", pinned: "pinnedData" } as const;
  return await present(store, run, { ...options, ...what, entries });
}

type Present = HubOptions & {
  entries: HubEntry[];
  kind: "note/model" | "note/data";
  what: string;
  pinned: string;
};

async function present(
  store: Store,
  { head, config }: Recorded,
  { entries, kind, what, pinned, ...options }: Present,
): Promise<{ found: FetchedFiles[]; rows: NewRow[] }> {
  const wanted = eachOnce(entries);
  if (wanted.length === 0) return { found: [], rows: [] };
  const free = wanted.find(({ name }) => hubName(name)!.commit === null);
  if (free !== undefined) {
    throw new InvalidInputError(
      `Cannot run '${head.id}' because its ${what} '${free.hub}' was recorded without a commit: ` +
        "another version could arrive at the next start. Fix: give createRun the configuration " +
        `that ${pinned} returns`,
      { run: head.id, name: free.hub },
    );
  }
  // A fork has what its ancestors have.
  const runs = [head, ...(await ancestors(store, head)).map((ancestor) => ancestor.head)];
  const notes = await Promise.all(runs.map(({ id }) => store.read(id, { kinds: [kind] })));
  const known = new Map(
    notes.flat().map((row) => [row.key, HubNote.parse(recordedValue(row))]),
  );
  const requests = wanted.map((one) => ({ ...one, recorded: known.get(one.hub)?.files }));
  const found = await fetched(config, requests, { ...options, download: true });
  const rows = found.filter(({ name }) => !known.has(name)).map((one): NewRow => ({
    kind,
    key: one.name,
    value: canonicalJson(HubNote.strip().parse(one)),
  }));
  return { found, rows };
}

const Answers = z.array(z.string().nullable());

/**
 * Checks that no model needs its own code without `trust_remote_code`, and that code which may run
 * is whole.
 * @throws {InvalidInputError} One sentence with the fix.
 */
export async function checkModelCode(
  config: object,
  { models, ...options }: HubOptions & { models: readonly FetchedFiles[] },
): Promise<void> {
  const requests = namedModels(config).map(({ text, hub, trusted }) => ({
    name: text,
    directory: models.find(({ name }) => name === hub)?.directory ?? text,
    trusted,
  })).filter(({ directory }) => bringsCode(directory));
  if (requests.length === 0) return;
  const { code, stdout, stderr } = await runPython(
    await trainerPython({ ...config }, { onProgress: options.onSetup, signal: options.signal }),
    {
      module: "holdfast_worker.model_code",
      input: JSON.stringify(requests),
      signal: options.signal,
    },
  );
  if (code !== 0) {
    throw new InvalidInputError(`Cannot check the code of models:\n${stderr.trimEnd()}`, { code });
  }
  const why = Answers.parse(JSON.parse(stdout.trimEnd().split("\n").at(-1)!)).find(Boolean);
  if (why) throw new InvalidInputError(why, { models: requests.map(({ name }) => name) });
}

/** Most models bring none: then nothing is asked. */
function bringsCode(directory: string): boolean {
  return ["config.json", "tokenizer_config.json"].some((name) => {
    try {
      return Deno.readTextFileSync(`${directory}/${name}`).includes('"auto_map"');
    } catch {
      return false; // What a directory lacks is said elsewhere.
    }
  });
}
