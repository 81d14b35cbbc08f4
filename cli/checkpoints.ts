import { createHash } from "node:crypto";
import { Checkpoint } from "../workers/mod.ts";
import type { Home } from "../flows/mod.ts";
import { print, printJson, table } from "./output.ts";
import { findRun, newestRun } from "./runs.ts";

export type CheckpointFacts = {
  version: string;
  dir: string;
  digest: string;
  world_size: number;
  files: number;
  bytes: number;
  /** The first file that is missing or changed; null: none was found, or none was looked for. */
  problem: string | null;
  verified: boolean;
};

/** `checkpoints RUN`: each with its directory, and with `--verify` every file held against its recorded hash. */
export async function listCheckpoints(
  home: Home,
  id: string | undefined,
  options: { json?: boolean; verify?: boolean },
): Promise<boolean> {
  const list = await readCheckpoints(home, id, { verify: options.verify === true });
  if (options.json) printJson(list);
  else if (list.length === 0) print("no checkpoint yet");
  else {
    const line = (c: CheckpointFacts) => [
      c.version.slice(0, 12),
      String(c.world_size),
      `${(c.bytes / 2 ** 20).toFixed(1)} MiB`,
      c.problem ?? (c.verified ? "whole" : "not checked"),
      `${c.dir}/hf`,
    ];
    print(table(["version", "ranks", "size", "state", "open with from_pretrained"], list.map(line)));
  }
  return list.every(({ problem }) => problem === null);
}

/** The checkpoints that a run (the newest, if none is named) has kept, oldest first. */
export async function readCheckpoints(
  home: Home,
  id: string | undefined,
  options: { verify: boolean },
): Promise<CheckpointFacts[]> {
  const head = await findRun(home, id ?? await newestRun(home));
  const rows = await home.store.read(head.id, { kinds: ["note/checkpoint", "note/checkpoint_dropped"] });
  const dropped = new Set(rows.filter((row) => row.kind === "note/checkpoint_dropped").map((row) => row.key));
  const kept = rows.filter((row) => row.kind === "note/checkpoint" && !dropped.has(row.key));
  return await Promise.all(kept.map(async (row) => {
    const checkpoint = Checkpoint.parse(JSON.parse(row.value));
    const problem = options.verify ? await firstProblem(checkpoint) : null;
    const bytes = checkpoint.files.reduce((sum, file) => sum + file.bytes, 0);
    const { version, dir, digest, world_size } = checkpoint;
    return {
      version,
      dir,
      digest,
      world_size,
      files: checkpoint.files.length,
      bytes,
      problem,
      verified: options.verify,
    };
  }));
}

/** The first file that is missing or has other bytes than were recorded; null: the checkpoint is whole. */
async function firstProblem(checkpoint: Checkpoint): Promise<string | null> {
  for (const file of checkpoint.files) {
    const hash = createHash("sha256");
    try {
      const opened = await Deno.open(`${checkpoint.dir}/${file.path}`);
      for await (const chunk of opened.readable) hash.update(chunk);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return `${file.path} is missing`;
      throw error;
    }
    if (hash.digest("hex") !== file.sha256) return `${file.path} is not what was saved`;
  }
  return null;
}
