/** Why a run cannot start from another one's checkpoint. */
import type { z } from "zod";
import {
  canonicalJson,
  isReadable,
  recordedValue,
  type RunHead,
  type Store,
} from "../../engine/mod.ts";
import type { RowTables } from "../../flows/mod.ts";
import { type Differing, fixedByCheckpoint } from "../forks/fixed_by_prefix.ts";
import { type StartRound, type StartSource, unreadable } from "./start_source.ts";

/** `path`: the setting that says it. */
export type StartProblem = { path: string; message: string };
type Fields = Record<string, unknown>;
type Starting = StartSource & StartRound & { schema: z.ZodType; after: Fields; rows: RowTables };

/** Everything that does not fit, at once. */
export async function startProblems(store: Store, starting: Starting): Promise<StartProblem[]> {
  const { head, loop, record: { round } } = starting;
  const unread = unreadable(starting).map((what) => ({
    path: "start_from",
    message: `this release cannot read what round ${round} of run '${head.id}' passed on: ${what}`,
  }));
  const few = loop.times > round ? [] : [{
    path: "rounds",
    message: `is ${loop.times}, and run '${head.id}' is started from its round ${round}: rounds ` +
      `count on, so use ${round + 1} or more`,
  }];
  const config = await asRead(store, starting);
  return [
    ...unread,
    ...few,
    ...otherSettings({ ...starting, config }),
    ...await otherRows(store, starting),
  ];
}

/** The other run's configuration as if it had read the model that it created. */
async function asRead(store: Store, { head, config, after }: Starting): Promise<Fields> {
  const { recipe: _, ...model } = (config.model ?? {}) as Fields;
  const path = await createdModel(store, head);
  if (path === null) return config;
  const { seed } = (after.model ?? {}) as Fields; // Of no model that is read.
  return { ...config, model: { ...model, seed, path } };
}

/** The directory of the model that a run created; null: it created none. */
async function createdModel(store: Store, { id }: RunHead): Promise<string | null> {
  const results = await store.read(id, { kinds: ["result"], prefix: "create_model" });
  for (const row of results.filter(isReadable)) {
    const { output } = (recordedValue(row) ?? {}) as { output?: Fields };
    if (typeof output?.path === "string") return output.path;
  }
  return null;
}

/** Settings on which the state, or the place in the data, depends. */
function otherSettings({ head, config, schema, after, loop, models, record }: Starting) {
  const changing = { schema, before: config, after, loop: loop.name, round: record.round };
  const critic = models.some(({ name }) => name === "critic");
  const differing = [...fixedByCheckpoint(changing), ...readOtherwise(config, after)];
  return differing.filter(({ path }) => critic || !path.startsWith("value_model."))
    .map(({ path, was, is, why }) => ({
      path,
      message: `is ${shown(is)}, and ${shown(was)} in run '${head.id}': ${
        why ?? "its checkpoint and its place in the data fit only that"
      }`,
    }));
}

/** Which rows of the files are read, besides what the digest of their table says. */
function readOtherwise({ data: was }: Fields, { data: is }: Fields): Differing[] {
  const names = ["on_long_prompt", "prompt_tokens_max"];
  const [before, after] = [was, is].map((data) => (data ?? {}) as Fields);
  const differing = names.filter((name) =>
    name in before! && canonicalJson(before![name]) !== canonicalJson(after![name])
  );
  return differing.map((name) => ({ path: `data.${name}`, was: before![name], is: after![name] }));
}

/** A place in the data is one in these rows only. */
async function otherRows(
  store: Store,
  { head, loop, record, after, rows }: Starting,
): Promise<StartProblem[]> {
  const path = after.data === undefined ? "task" : "data.train";
  const anew = "To draw from the start of other rows with a fresh optimizer, start a run whose " +
    "model.path is the checkpoint's hf directory";
  const read = await rowsRead(store, head);
  const { train } = rows;
  if (train === undefined) return []; // A custom graph may have none, or other ones.
  if (read === null) {
    return [{ path, message: `run '${head.id}' has no readable record of its rows. ${anew}` }];
  }
  if (train.digest !== read.digest) {
    return [{
      path,
      message: `has ${train.size} rows with digest ${train.digest.slice(0, 12)}, and run ` +
        `'${head.id}' drew from ${read.rows} rows with digest ${read.digest.slice(0, 12)}: its ` +
        `place is one in those. ${anew}`,
    }];
  }
  const [was, is] = [record.carried, loop.carry].map((names) => "drawn" in names);
  if (was === is) return [];
  return [{
    path,
    message: `${is ? "is" : "is not"} a mixture by weights, and ${is ? "was not" : "was"} in run ` +
      `'${head.id}': the draws of each source are not known. ${anew}`,
  }];
}

/** What the run recorded of its training rows when it opened them. */
async function rowsRead(
  store: Store,
  { id }: RunHead,
): Promise<{ rows: number; digest: string } | null> {
  const results = await store.read(id, { kinds: ["result"], prefix: "open_data" });
  for (const row of results.filter(isReadable)) {
    const { output } = (recordedValue(row) ?? {}) as { output?: Fields };
    const { split, rows, digest } = output ?? {};
    if (split === "train" && typeof rows === "number" && typeof digest === "string") {
      return { rows, digest };
    }
  }
  return null;
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
