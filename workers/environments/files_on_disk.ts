import { join } from "node:path";
import { isNothing } from "../../engine/mod.ts";

/** Files of directories that are removed together. A file with links elsewhere frees no space. */
export class FilesOnDisk {
  /** Links seen of each file with several, by device and inode. */
  readonly #links = new Map<string, number>();

  /** Adds a directory. Returns the bytes that it frees together with those added before. */
  add(path: string): number {
    let bytes = 0;
    for (const file of filesBelow(path)) {
      const seen = this.#seen(file) + 1;
      this.#links.set(idOf(file), seen);
      if (seen >= (file.nlink ?? 1)) bytes += file.size;
    }
    return bytes;
  }

  /** Whether a file of a directory has a link that is neither here nor in those added. */
  linkedElsewhere(path: string): boolean {
    for (const file of filesBelow(path)) {
      if (this.#seen(file) + 1 < (file.nlink ?? 1)) return true;
    }
    return false;
  }

  #seen(file: Deno.FileInfo): number {
    return this.#links.get(idOf(file)) ?? 0;
  }
}

/** Bytes of the files below a directory, each counted once. */
export function bytesBelow(path: string): number {
  const sizes = new Map<string, number>();
  for (const file of filesBelow(path)) sizes.set(idOf(file), file.size);
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}

const idOf = ({ dev, ino }: Deno.FileInfo) => `${dev}:${ino}`;

/** Follows no link. */
function* filesBelow(path: string): Generator<Deno.FileInfo> {
  for (const { name, isDirectory, isFile } of entries(path)) {
    const below = join(path, name);
    if (isDirectory) yield* filesBelow(below);
    else if (isFile) yield Deno.lstatSync(below);
  }
}

function entries(path: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(path)];
  } catch (error) {
    if (isNothing(error)) return []; // Another process has removed it.
    throw error;
  }
}

/** Names in a directory; none if it does not exist. */
export function namesIn(dir: string): string[] {
  return entries(dir).map(({ name }) => name);
}

/** Removes a file that may be gone. */
export async function removeFile(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (error) {
    if (!isNothing(error)) throw error;
  }
}
