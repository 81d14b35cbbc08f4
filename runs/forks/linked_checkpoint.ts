import { basename, dirname, isAbsolute, normalize } from "node:path";
import { BadDataError, type DirectoryOwner, isNamed, removeTree } from "../../engine/mod.ts";
import { OWN_NAMES } from "../../flows/mod.ts";
import type { CheckpointNote } from "../../workers/mod.ts";

/**
 * A row may come from another user of the store, so what it names must be inside the run's
 * directory.
 */
function notOurs({ dir }: CheckpointNote, name: string): BadDataError {
  return new BadDataError(
    `Cannot keep checkpoint '${dir}' because '${name}' is not a name that a checkpoint has. ` +
      "Fix: use another round",
    { dir, name },
  );
}

/**
 * A run's own checkpoint with the files of another run's, which may drop the original. Its directory
 * (default name: the original's) starts empty, because a killed process may have left links there.
 */
export async function linkedCheckpoint(
  checkpoint: CheckpointNote,
  checkpoints: string,
  { name = basename(checkpoint.dir), ...of }: {
    home: string;
    owner: DirectoryOwner;
    name?: string;
  },
): Promise<CheckpointNote> {
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
  return { ...checkpoint, dir };
}

/** Copies the files if the file system has no links, or is a different one. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await Deno.link(from, to);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.AlreadyExists) {
      throw error;
    }
    await Deno.copyFile(from, to);
    using copy = await Deno.open(to);
    await copy.sync();
  }
}
