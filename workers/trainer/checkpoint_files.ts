import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { basename, dirname } from "node:path";
import { z } from "zod";
import { BadDataError, InfrastructureError, isNothing } from "../../engine/mod.ts";

/** A file that is missing (found: null) or has other bytes than were recorded. */
export type FileProblem = { file: string; expected: string; found: string | null };

/**
 * A `note/checkpoint_set_aside` row: recorded before the directory is moved. Its key is the
 * checkpoint's version.
 */
export const SetAside = z.strictObject({
  dir: z.string(),
  to: z.string(),
  file: z.string(),
  expected: z.string().describe("sha256 that was recorded."),
  found: z.string().nullable().describe("sha256 that the file has now; null: it is missing."),
});
export type SetAside = z.infer<typeof SetAside>;

/** The first file under `dir` that differs from its record; null: all are intact. */
export async function firstProblem(
  dir: string,
  files: readonly { path: string; sha256: string }[],
): Promise<FileProblem | null> {
  for (const { path, sha256 } of files) {
    const found = await hashOf(`${dir}/${path}`);
    if (found !== sha256) return { file: path, expected: sha256, found };
  }
  return null;
}

/**
 * The file that explains why a worker failed to load `dir`; null: none does. A worker reports a
 * damaged file as a BadDataError or an InfrastructureError, so the files themselves decide.
 */
export async function problemBehind(
  error: unknown,
  { dir, files }: { dir: string; files: readonly { path: string; sha256: string }[] },
): Promise<FileProblem | null> {
  return mayBeDamage(error) ? await firstProblem(dir, files) : null;
}

/** Whether damaged input files may explain this error. */
export function mayBeDamage(error: unknown): boolean {
  return error instanceof BadDataError || error instanceof InfrastructureError;
}

/** `problem` in words. */
export function problemText({ file, expected, found }: FileProblem): string {
  if (found === null) return `${file} is missing`;
  return `${file} is not what was saved: its sha256 is ${found.slice(0, 12)}, recorded ${
    expected.slice(0, 12)
  }`;
}

/**
 * A `note/checkpoint_dropped` row: recorded before the directory is removed. Its key is the
 * checkpoint's version.
 */
export const CheckpointDropped = z.strictObject({
  dir: z.string(),
  weights: z.string().optional().describe(
    "The directory to which its weights (`hf`, `ema`) are moved.",
  ),
});
export type CheckpointDropped = z.infer<typeof CheckpointDropped>;

/** Where the weights of a dropped checkpoint stay: next to the others. */
export function weightsPath(dir: string): string {
  return `${dirname(dir)}/${WEIGHTS}/${basename(dir)}`;
}
const WEIGHTS = "weights";

/** The directories of a checkpoint that are models: the weights, and their moving average. */
export const MODEL_DIRECTORIES = ["hf", "ema"];

/** Whether a dropped checkpoint's weights must still be moved before it is removed. */
export function hasWeightsToMove({ dir, weights }: CheckpointDropped): boolean {
  return weights !== undefined && MODEL_DIRECTORIES.some((model) => existsSync(`${dir}/${model}`));
}

/**
 * Moves what stays of a dropped checkpoint out of the directory that will be removed, unless that
 * was done.
 */
export async function moveWeights(dropped: CheckpointDropped): Promise<void> {
  if (!hasWeightsToMove(dropped)) return;
  const { dir, weights } = dropped;
  await Deno.mkdir(weights!, { recursive: true });
  for (const model of MODEL_DIRECTORIES) {
    await Deno.rename(`${dir}/${model}`, `${weights}/${model}`).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
  }
}

/** Where a damaged checkpoint goes: next to the others, for inspection. */
export function asidePath(dir: string): string {
  return `${dirname(dir)}/${ASIDE}/${basename(dir)}`;
}
export const ASIDE = "set_aside";

/**
 * Moves a damaged checkpoint out of the way. A second call, or a missing directory, is not an
 * error.
 */
export async function moveAside({ dir, to }: Pick<SetAside, "dir" | "to">): Promise<void> {
  await Deno.mkdir(dirname(to), { recursive: true });
  await Deno.rename(dir, to).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

/**
 * Makes room for a directory that is about to be written: sets aside a file in its place or in its
 * parent's place. Links and directories stay. Returns what was moved, and where to.
 */
export async function makeRoomFor(dir: string): Promise<{ from: string; to: string }[]> {
  const moved: { from: string; to: string }[] = [];
  for (const from of [dirname(dir), dir]) {
    if (!await isFile(from)) continue;
    const to = `${asidePath(from)}-${crypto.randomUUID().slice(0, 8)}`; // An earlier one stays.
    await moveAside({ dir: from, to });
    moved.push({ from, to });
  }
  return moved;
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await Deno.lstat(path)).isFile;
  } catch (error) {
    if (isNothing(error)) return false;
    throw error;
  }
}

/** null: there is no file. */
async function hashOf(path: string): Promise<string | null> {
  const hash = createHash("sha256");
  try {
    const opened = await Deno.open(path);
    for await (const chunk of opened.readable) hash.update(chunk);
  } catch (error) {
    if (isNothing(error) || error instanceof Deno.errors.IsADirectory) return null;
    throw error;
  }
  return hash.digest("hex");
}
