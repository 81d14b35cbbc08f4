/**
 * Models of the hub that a configuration names: they get their commits before a run is recorded, so
 * the record says which bytes they were, and a resumed run never meets newer ones.
 */
import { namedFiles, setAt, valueAt } from "../../configs/mod.ts";
import { hubName, hubNameText } from "../../data/mod.ts";
import {
  canonicalJson,
  InvalidInputError,
  type NewRow,
  recordedValue,
  type RunHead,
  type Store,
} from "../../engine/mod.ts";
import {
  FetchedModel,
  fetchModels,
  type OnEnvironmentProgress,
  runPython,
  type WantedModel,
} from "../../workers/mod.ts";
import { z } from "zod";
import { ancestors } from "../forks/lineage.ts";
import { fetchingPython, trainerPython } from "./trainer_python.ts";

/** Who hears of it. */
type HubOptions = {
  onSetup?: OnEnvironmentProgress;
  /** Ends the search for models, and the creation of a Python environment for it. */
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

/** The models of the hub that a configuration names, each once. */
function hubModels(config: unknown): WantedModel[] {
  const named = namedModels(config).filter(({ hub }) => hub !== null);
  // Two spellings of one revision must not get two commits.
  return [...new Set(named.map(({ hub }) => hub!))].map((name) => ({
    name,
    code: named.some(({ hub, trusted }) => hub === name && trusted),
    recorded: null,
  }));
}

/**
 * The configuration with the commit of each model of the hub, and these models. With `download`
 * they are then in the cache of this host.
 * @throws {InvalidInputError | InfrastructureError} See {@linkcode fetchModels}.
 */
export async function pinnedModels<C>(
  config: C,
  { download, ...options }: HubOptions & { download: boolean },
): Promise<{ config: C; models: FetchedModel[] }> {
  const wanted = hubModels(config);
  if (wanted.length === 0) return { config, models: [] };
  const { say, onSetup: onProgress, signal } = options;
  const python = await fetchingPython(config as Record<string, unknown>, { onProgress, signal });
  const models = await fetchModels(python, wanted, { download, say, signal });
  const pinned = namedModels(config).reduce<unknown>((so_far, { path, hub }) => {
    const place = wanted.findIndex(({ name }) => name === hub);
    return place < 0 ? so_far : setAt(so_far, { path, to: models[place]!.name });
  }, config);
  return { config: pinned as C, models };
}

/** The configuration with the directory of each model, for what reads a model's files now. */
export function withDirectories<C extends object>(config: C, models: readonly FetchedModel[]): C {
  return namedModels(config).reduce<unknown>((so_far, { path, hub }) => {
    const found = models.find(({ name }) => name === hub);
    return found === undefined ? so_far : setAt(so_far, { path, to: found.directory });
  }, config) as C;
}

/**
 * A script passes the same configuration again: its models have the commits that the run recorded,
 * if it names the same revisions.
 */
export function asPinned<C>(config: C, recorded: unknown): C {
  return namedModels(config).reduce<unknown>((so_far, { path, text }) => {
    const [given, known] = [text, String(valueAt(recorded, path))].map(hubName);
    const is_same = given && known && given.commit === null && given.model === known.model &&
      given.revision === known.revision;
    return is_same ? setAt(so_far, { path, to: valueAt(recorded, path) }) : so_far;
  }, config) as C;
}

/** Value of a `note/model` row; its key is the model's name with its commit. */
const ModelNote = FetchedModel.omit({ name: true, directory: true });

/**
 * Brings the models that a run recorded into the cache of this host, at their commits; without a
 * network if the cache has them. `rows`: record those that are not recorded yet.
 * @throws {InvalidInputError} If a model has no commit.
 */
export async function presentModels(
  store: Store,
  { head, config }: { head: RunHead; config: object },
  options: HubOptions,
): Promise<{ models: FetchedModel[]; rows: NewRow[] }> {
  const wanted = hubModels(config);
  if (wanted.length === 0) return { models: [], rows: [] };
  const free = wanted.find(({ name }) => hubName(name)!.commit === null);
  if (free !== undefined) {
    throw new InvalidInputError(
      `Cannot run '${head.id}' because its model '${free.name}' was recorded without a commit: ` +
        "another version could arrive at the next start. Fix: give createRun the configuration " +
        "that pinnedModels returns",
      { run: head.id, model: free.name },
    );
  }
  // A fork has its ancestors' models.
  const runs = [head, ...(await ancestors(store, head)).map((ancestor) => ancestor.head)];
  const notes = await Promise.all(
    runs.map(({ id }) => store.read(id, { kinds: ["note/model"] })),
  );
  const known = new Map(
    notes.flat().map((row) => [row.key, ModelNote.parse(recordedValue(row))]),
  );
  const asked = wanted.map((one) => ({ ...one, recorded: known.get(one.name)?.files ?? null }));
  const { onSetup: onProgress, signal } = options;
  const python = await fetchingPython({ ...config }, { onProgress, signal });
  const models = await fetchModels(python, asked, { download: true, say: options.say, signal });
  const rows = models.filter(({ name }) => !known.has(name)).map((model): NewRow => ({
    kind: "note/model",
    key: model.name,
    value: canonicalJson(ModelNote.strip().parse(model)),
  }));
  return { models, rows };
}

const Answers = z.array(z.string().nullable());

/**
 * Checks that no model needs its own code without `trust_remote_code`, and that code which may run
 * is whole.
 * @throws {InvalidInputError} One sentence with the fix.
 */
export async function checkModelCode(
  config: object,
  { models, ...options }: HubOptions & { models: readonly FetchedModel[] },
): Promise<void> {
  const asked = namedModels(config).map(({ text, hub, trusted }) => ({
    name: text,
    directory: models.find(({ name }) => name === hub)?.directory ?? text,
    trusted,
  })).filter(({ directory }) => bringsCode(directory));
  if (asked.length === 0) return;
  const { code, stdout, stderr } = await runPython(
    await trainerPython({ ...config }, { onProgress: options.onSetup, signal: options.signal }),
    {
      module: "holdfast_worker.model_code",
      input: JSON.stringify(asked),
      signal: options.signal,
    },
  );
  if (code !== 0) {
    throw new InvalidInputError(`Cannot check the code of models:\n${stderr.trimEnd()}`, { code });
  }
  const why = Answers.parse(JSON.parse(stdout.trimEnd().split("\n").at(-1)!)).find(Boolean);
  if (why) throw new InvalidInputError(why, { models: asked.map(({ name }) => name) });
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
