import { z } from "zod";
import type { CheckpointsConfig } from "../configs/mod.ts";
import { recordedAs, type RunHead } from "../engine/mod.ts";
import { type KeepPolicy, type KeepReason, kept } from "../flows/mod.ts";
import { CheckpointNote, firstProblem, problemText } from "../workers/mod.ts";
import { findRun, newestRun } from "./home/find_run.ts";
import type { Home } from "./home/home.ts";

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
  /** Why it is kept; the next saved checkpoint may change that. */
  kept: KeepReason[];
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
  const notes = await checkpointNotes(home, head);
  const chains = Map.groupBy(notes, ({ group = "trainer" }) => group);
  const reasons = new Map(
    [...chains.values()].flatMap((own) => [...kept(own, keepPolicy(head), own.at(-1)!.number)]),
  );
  return await Promise.all(notes.map(async ({ group = "trainer", files, ...note }) => {
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
  }));
}

const Dropped = z.object({ dir: z.string() });

/** Those that are neither dropped nor set aside. A version may have been saved again since. */
async function checkpointNotes(home: Home, head: RunHead): Promise<CheckpointNote[]> {
  const rows = await home.store.read(head.id, {
    kinds: ["note/checkpoint", "note/checkpoint_dropped", "note/checkpoint_set_aside"],
  });
  const notes = new Map<string, CheckpointNote>();
  for (const row of rows) {
    const { kind, key } = row;
    if (kind === "note/checkpoint") notes.set(key, recordedAs(row, CheckpointNote.parse));
    else if (recordedAs(row, Dropped.parse).dir === notes.get(key)?.dir) notes.delete(key);
  }
  return [...notes.values()];
}

/** The run's `checkpoints` block, in which a custom graph may leave fields out. */
function keepPolicy(head: RunHead): KeepPolicy {
  const { checkpoints } = JSON.parse(head.config) as { checkpoints?: Partial<CheckpointsConfig> };
  return { keep_last: 2, keep_every: null, keep_best: null, ...checkpoints };
}
