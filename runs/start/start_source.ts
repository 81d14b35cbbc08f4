/** What a run can start from: another run's closed rounds whose models all have a checkpoint. */
import type { z } from "zod";
import type { StartFrom } from "../../configs/mod.ts";
import { Policy } from "../../data/mod.ts";
import {
  type Graph,
  InvalidInputError,
  isNothing,
  isReadable,
  type LoopNode,
  LostRecordError,
  recordedField,
  recordedRound,
  recordedValue,
  type RoundRecord,
  rowValue,
  type RunHead,
} from "../../engine/mod.ts";
import { CARRIED } from "../../flows/mod.ts";
import { CheckpointNote, ModelDigests, recordedRows } from "../../workers/mod.ts";
import { residentRows } from "../forks/lineage.ts";
import { findRun } from "../home/find_run.ts";
import type { Home } from "../home/home.ts";
import { refuseOtherHome } from "../home/run_directories.ts";
import { currentConfig } from "../session/settings.ts";
import { startOf } from "./start_note.ts";

/**
 * A model that a round passed on, by the name under which it did, and its checkpoint.
 * `model_digest`: of the weights that the other run, or the one that it started from, opened first;
 * null: not known.
 */
export type StartModel = {
  name: string;
  policy: Policy;
  checkpoint: CheckpointNote;
  model_digest: string | null;
};
type FoundModel = Omit<StartModel, "model_digest">;
/** A closed round that a run can start from. `carried`: what a loop takes over of it. */
export type StartRound = {
  record: RoundRecord;
  carried: Record<string, unknown>;
  models: StartModel[];
};
export type StartSource = { head: RunHead; config: Record<string, unknown>; loop: LoopNode };

/**
 * The run that a new run of `graph` names. It may be of any release.
 * @throws {InvalidInputError} If there is none, or its graph differs.
 */
export async function startSource(
  home: Home,
  { run }: StartFrom,
  graph: Graph,
): Promise<StartSource> {
  const head = await findRun(home, run);
  await refuseOtherHome(home, head);
  const config = await currentConfig(home.store, head);
  const loop = graph.nodes.findLast((node) => node.kind === "loop");
  const { name } = recordedField(head, "graph") as { name: string };
  if (name === graph.name && loop !== undefined) return { head, config, loop };
  throw new InvalidInputError(
    `run '${run}' is a run of '${name}', and only another one of that can continue it: this is ` +
      `'${graph.name}'`,
    { run },
  );
}

/**
 * The round to start from: the named one, or the newest that is possible.
 * @throws {InvalidInputError} Naming the rounds that are possible.
 */
export async function startRound(
  home: Home,
  { head, loop }: StartSource,
  { round }: StartFrom,
): Promise<StartRound> {
  const rows = await home.store.read(head.id, { kinds: ["round"], prefix: `${loop.name}/` });
  const begun = (await startOf(home.store, head))?.round ?? 0;
  // With a lag, a start also has rows of the rounds before it, with the same values.
  const loopRows = rows.filter(({ key }) => Number(key.slice(loop.name.length + 1)) >= begun);
  const checkpoints = await keptCheckpoints(home, head);
  const possible: (Omit<StartRound, "models"> & { models: FoundModel[] })[] = [];
  let lacks: string[] = [];
  for (const row of loopRows) {
    const record = await rowValue(home.artifacts, row).then((value) => recordedRound(row, value))
      .catch(unlessLost);
    if (record === null) continue;
    const found = withModels(record, { loop, checkpoints });
    if (found.lacking.length === 0) possible.push({ record, ...found });
    else if (record.round === round) lacks = found.lacking;
  }
  const chosen = round === null
    ? possible.at(-1)
    : possible.find(({ record }) => record.round === round);
  if (chosen) return { ...chosen, models: await withDigests(home, { head, ...chosen }) };
  const numbers = possible.map(({ record }) => record.round);
  const what = lacks.length > 0 ? ` of its ${lacks.join(" and its ")}` : "";
  throw new InvalidInputError(
    `run '${head.id}' keeps no checkpoint${what} after ${
      round === null ? "any of its closed rounds" : `round ${round}`
    }` +
      (numbers.length > 0 ? `; a start is possible after round ${numbers.join(", ")}` : "") +
      (lacks.includes("reference")
        ? "; with reference.refresh_rounds: null, the reference is the model again"
        : ""),
    { run: head.id, rounds: numbers },
  );
}

/** Models that were never trained are those that the new run starts with by itself. */
function withModels(
  { carried }: RoundRecord,
  { loop, checkpoints }: { loop: LoopNode; checkpoints: ReadonlyMap<string, CheckpointNote> },
): Pick<StartRound, "carried"> & { models: FoundModel[]; lacking: string[] } {
  const taken = Object.keys(loop.carry).filter((name) => name in carried)
    .map((name) => [name, carried[name]] as const);
  const models: FoundModel[] = [];
  const lacking: string[] = [];
  const untrained = new Set<string>();
  for (const [name, value] of taken) {
    const { data: policy } = Policy.strip().safeParse(value);
    if (policy === undefined) continue; // `unreadable` reports a model that it cannot read.
    const checkpoint = checkpoints.get(policy.version);
    if (policy.number === 0) untrained.add(name);
    else if (checkpoint) models.push({ name, policy, checkpoint });
    else lacking.push(name === "critic" ? "value model" : name);
  }
  const kept = taken.filter(([name]) => !untrained.has(name));
  return { carried: Object.fromEntries(kept), models, lacking };
}

/** With the digest of the directory from which references are read. */
async function withDigests(
  home: Home,
  { head, models }: { head: RunHead; models: FoundModel[] },
): Promise<StartModel[]> {
  const rows = await residentRows(home.store, head);
  const digests = new ModelDigests(home.artifacts, recordedRows(rows.filter(isReadable)));
  return await Promise.all(models.map(async (model) => ({
    ...model,
    model_digest: await digests.digestOf(model.policy.model_path),
  })));
}

/** What of a round this release cannot read, and why. */
export function unreadable({ carried }: Pick<StartRound, "carried">): string[] {
  return Object.entries(carried).flatMap(([name, value]) => {
    const error = CARRIED[name]?.safeParse(value).error;
    return error ? error.issues.map((issue) => issueText(name, issue)) : [];
  });
}

function issueText(name: string, { path, message }: z.core.$ZodIssue): string {
  return `${[name, ...path].join(".")}: ${message}`;
}

/**
 * Checkpoints whose files are there, by version: those that the run saved, and those that it started
 * from itself.
 * @throws {InvalidInputError} If rows of another release cannot be read, naming what.
 */
async function keptCheckpoints(home: Home, { id }: RunHead): Promise<Map<string, CheckpointNote>> {
  const rows = await home.store.read(id, {
    kinds: [
      "note/version",
      "note/checkpoint",
      "note/checkpoint_dropped",
      "note/checkpoint_set_aside",
    ],
  });
  const notes = new Map<string, CheckpointNote>();
  const starts = new Map<string, CheckpointNote>();
  const wrong = new Map<string, string>();
  const take = (into: Map<string, CheckpointNote>, version: string, value: unknown) => {
    const { data, error } = CheckpointNote.strip().safeParse(value);
    if (data) into.set(version, data);
    else wrong.set(version, issueText("checkpoint", error.issues[0]!));
  };
  for (const row of rows.filter(isReadable)) {
    const value = recordedValue(row) as { dir?: string; start?: { checkpoint: unknown } };
    if (row.kind === "note/checkpoint") take(notes, row.key, value);
    else if (row.kind === "note/version") {
      if (value.start) take(starts, row.key, value.start.checkpoint);
    } else {
      wrong.delete(row.key);
      if (value.dir === notes.get(row.key)?.dir) notes.delete(row.key);
    }
  }
  const known = new Map([...starts, ...notes]);
  if (known.size === 0 && wrong.size > 0) {
    throw new InvalidInputError(
      `this release cannot read the checkpoints of run '${id}': ${[...wrong.values()][0]}`,
      { run: id },
    );
  }
  for (const [version, { dir }] of known) if (!await isThere(dir)) known.delete(version);
  return known;
}

async function isThere(dir: string): Promise<boolean> {
  return await Deno.stat(dir).then(({ isDirectory }) => isDirectory, (error) => {
    if (isNothing(error)) return false;
    throw error;
  });
}

function unlessLost(error: unknown): null {
  if (error instanceof LostRecordError) return null;
  throw error;
}
