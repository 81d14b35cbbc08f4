/** The directory that a preparation writes to: its own, and nothing in it is replaced. */
import { lstatSync } from "node:fs";
import { dirname } from "node:path";
import {
  type DirectoryOwner,
  InvalidInputError,
  isNamed,
  makeDirectory,
  OWNER_FILE,
  ownerOf,
  PRIVATE_FILE,
  removeTree,
  writeOwner,
} from "../../engine/mod.ts";

/** A file of the output while it is written. */
const UNFINISHED = /\.[A-Za-z0-9][A-Za-z0-9._-]*\.[0-9a-f]{16}\.unfinished/;

/**
 * Refuses a directory that has anything in it. `owner`: the run whose own directory it may be;
 * null: a run that has none yet.
 * @throws {InvalidInputError} If it is a file, or belongs to someone else.
 */
export function refuseOthersOutput(dir: string, owner: DirectoryOwner | null): void {
  const found = lstatSync(dir, { throwIfNoEntry: false });
  if (found === undefined) return;
  const refuse = (why: string) => {
    throw new InvalidInputError(
      `Cannot write prepared data to ${dir} because ${why}. Fix: set \`output\` to a directory ` +
        "that is empty or missing; Holdfast replaces nothing that it did not write",
      { dir },
    );
  };
  if (!Deno.statSync(dir).isDirectory) return refuse("it is a file");
  const written = ownerOf(dir);
  if (written !== null && owner !== null && isSame(written, owner)) return;
  // A run that wrote nothing has only taken the directory; killed, it may leave a part of the name.
  const others = [...Deno.readDirSync(dir)].map(({ name }) => name)
    .filter((name) => !name.startsWith(OWNER_FILE)).toSorted();
  if (others.length === 0) return;
  refuse(
    written === null
      ? `it has other files, such as '${others[0]}'`
      : `it has the data of run '${written.run}'`,
  );
}

function isSame(a: DirectoryOwner, b: DirectoryOwner): boolean {
  return a.run === b.run && a.store === b.store;
}

/**
 * From here on the directory is this run's, until another run takes it before anything is written.
 * @throws {InvalidInputError} If it has anything in it that is not this run's.
 */
export function claimOutput(dir: string, owner: DirectoryOwner | null): void {
  // Without an owner there is no home that could be confused with another: a run on fakes.
  if (owner === null) return makeDirectory(dir);
  refuseOthersOutput(dir, owner);
  const written = ownerOf(dir);
  if (written === null || !isSame(written, owner)) writeOwner(dir, owner);
}

/**
 * Writes a file of the output. A reader sees all of it or none. `write` gets the empty file, and
 * makes its content durable.
 */
export async function writeOutput<T>(
  { dir, name }: { dir: string; name: string },
  write: (file: Deno.FsFile) => Promise<T>,
): Promise<T> {
  const random = crypto.getRandomValues(new Uint8Array(8)).toHex();
  const unfinished = `${dir}/.${name}.${random}.unfinished`;
  const file = await Deno.open(unfinished, { write: true, createNew: true, mode: PRIVATE_FILE });
  try {
    const written = await write(file);
    await Deno.rename(unfinished, `${dir}/${name}`);
    using folder = await Deno.open(dir);
    await folder.sync();
    return written;
  } catch (error) {
    await Deno.remove(unfinished).catch(() => {}); // The first error is the one that matters.
    throw error;
  } finally {
    file.close();
  }
}

/** Removes what killed engines left of files that they were writing. */
export async function removeUnfinished(dir: string): Promise<void> {
  for await (const { name, isFile } of Deno.readDir(dir)) {
    if (!isFile || !isNamed(name, UNFINISHED)) continue;
    // It may be gone: an engine that lost the run may still be finishing its own.
    await removeTree(`${dir}/${name}`, { home: dirname(dir), named: UNFINISHED, owner: null });
  }
}

/** Whether a file of the output has the size that was recorded. */
export async function isWritten(path: string, bytes: number): Promise<boolean> {
  const found = await Deno.lstat(path).catch(() => null);
  return found !== null && found.isFile && found.size === bytes;
}
