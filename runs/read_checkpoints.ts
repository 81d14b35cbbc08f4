import { recordedConfig } from "./session/settings.ts";
import type { CheckpointsConfig } from "../configs/mod.ts";
import { recordedAs, type RunHead } from "../engine/mod.ts";
import { type KeepPolicy, type KeepReason, kept } from "../flows/mod.ts";
import {
  CheckpointDropped,
  CheckpointNote,
  firstProblem,
  MODEL_DIRECTORIES,
  problemText,
  VersionNote,
} from "../workers/mod.ts";
import { findRun, newestRun } from "./home/find_run.ts";
import type { Home } from "./home/home.ts";
import { startOf } from "./start/start_note.ts";

/** A checkpoint as `checkpoints --json` prints it. */
export type CheckpointFacts = {
  version: string;
  /** The worker group of the version: `trainer` for the policy, `critic` for the value model. */
  group: string;
  /** Trained batches since the base. */
  number: number;
  /** null: saved between two rounds. */
  round: number | null;
  /** The value of checkpoints.keep_best's metric. */
  metric: number | null;
  dir: string;
  digest: string;
  world_size: number;
  files: number;
  bytes: number;
  /**
   * Why it is kept; the next saved checkpoint may change that. `start`: the run began from it
   * (`start_from`), for as long as the run exists. `weights`: only its weights are, permanently
   * (`keep_weights_every`).
   */
  kept: (KeepReason | "start" | "weights")[];
  /**
   * What is wrong with the first missing or changed file; null: there is none, or no file was
   * checked.
   */
  problem: string | null;
  verified: boolean;
};

/** The checkpoints that a run (default: the newest) has kept, oldest first. */
export async function readCheckpoints(
  home: Home,
  id: string | undefined,
  options: { verify: boolean },
): Promise<CheckpointFacts[]> {
  const head = await findRun(home, id ?? await newestRun(home));
  const { notes, weights } = await checkpointNotes(home, head);
  const chains = Map.groupBy(notes, ({ group = "trainer" }) => group);
  const reasons = new Map<string, CheckpointFacts["kept"]>(
    [...chains.values()].flatMap((
      chain,
    ) => [...kept(chain, keepPolicy(head), chain.at(-1)!.number)]),
  );
  const starts = await startNotes(home, head);
  for (const { version } of starts) reasons.set(version, [...reasons.get(version) ?? [], "start"]);
  for (const { version } of weights) reasons.set(version, ["weights"]);
  return await Promise.all(
    [...starts, ...weights, ...notes].map(async ({ group = "trainer", files, ...note }) => {
      const { version, number, round, metric, dir, digest, world_size } = note;
      const problem = options.verify ? await firstProblem(dir, files) : null;
      return {
        version,
        group,
        number,
        round,
        metric,
        dir,
        digest,
        world_size,
        files: files.length,
        bytes: files.reduce((sum, file) => sum + file.bytes, 0),
        kept: reasons.get(version) ?? [],
        problem: problem && problemText(problem),
        verified: options.verify,
      };
    }),
  );
}

const Removed = CheckpointDropped.strip();

/**
 * `notes`: those that are neither dropped nor set aside. `weights`: what is there of those that were
 * dropped except for their weights. A version may have been saved again since.
 */
async function checkpointNotes(
  home: Home,
  head: RunHead,
): Promise<{ notes: CheckpointNote[]; weights: CheckpointNote[] }> {
  const rows = await home.store.read(head.id, {
    kinds: ["note/checkpoint", "note/checkpoint_dropped", "note/checkpoint_set_aside"],
  });
  const notes = new Map<string, CheckpointNote>();
  const weights = new Map<string, CheckpointNote>();
  for (const row of rows) {
    const { kind, key } = row;
    if (kind === "note/checkpoint") {
      notes.set(key, recordedAs(row, CheckpointNote.parse));
      weights.delete(key);
      continue;
    }
    const { dir, weights: stay } = recordedAs(row, Removed.parse);
    const note = notes.get(key);
    if (note?.dir !== dir) continue;
    notes.delete(key);
    if (stay === undefined || !await isDirectory(stay)) continue; // Or a person removed it.
    const files = note.files.filter(({ path }) => MODEL_DIRECTORIES.includes(path.split("/")[0]!));
    weights.set(key, { ...note, dir: stay, files });
  }
  return { notes: [...notes.values()], weights: [...weights.values()] };
}

function isDirectory(path: string): Promise<boolean> {
  return Deno.stat(path).then((found) => found.isDirectory, () => false);
}

/** Those that the run started from, which are its own and never dropped. */
async function startNotes({ store }: Home, head: RunHead): Promise<CheckpointNote[]> {
  const start = await startOf(store, head);
  const versions = Object.values(start?.models ?? {}).map(({ version }) => version);
  const rows = await Promise.all(
    versions.map((prefix) => store.read(head.id, { kinds: ["note/version"], prefix, limit: 1 })),
  );
  return rows.flat().flatMap((row) => recordedAs(row, VersionNote.parse).start?.checkpoint ?? []);
}

/** The run's `checkpoints` block, in which a custom graph may leave fields out. */
function keepPolicy(head: RunHead): KeepPolicy {
  const { checkpoints } = recordedConfig(head) as {
    checkpoints?: Partial<CheckpointsConfig>;
  };
  return { keep_last: 2, keep_every: null, keep_best: null, ...checkpoints };
}
