import { lstatSync } from "node:fs";
import { DataError } from "../errors.ts";

/** Rows are private to the owner of the home, like everything in it. */
export const ROW_CACHE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
/** A file that is being written; killed processes leave some behind. */
const UNFINISHED = ".new";
const UNFINISHED_MS_MAX = 24 * 60 * 60 * 1000;

/**
 * The directory of a home with what is derived from data files: indexes of rows and unpacked files,
 * named by the content that they were made from or have. All of it may be removed at any time: what is
 * missing is made again when a source is next opened.
 */
export class RowCache {
  readonly dir: string;

  constructor(home: string) {
    this.dir = `${home}/cache/rows`;
  }

  /** The index of the table with this key. */
  indexPath(key: string): string {
    return `${this.dir}/${key}.index`;
  }

  /** JSON lines that a file was unpacked to. `content`: the hash of these lines. */
  unpackedPath(content: string): string {
    return `${this.dir}/${content}.jsonl`;
  }

  /** A name for a file that is being written, which no other process uses. */
  newPath(): string {
    return `${this.dir}/${crypto.randomUUID()}${UNFINISHED}`;
  }

  /** Makes the directory, and removes what processes that were killed long ago left in it. */
  prepare(): void {
    try {
      Deno.mkdirSync(this.dir, { recursive: true, mode: DIRECTORY_MODE });
      for (const { name } of Deno.readDirSync(this.dir)) {
        if (!name.endsWith(UNFINISHED)) continue;
        const path = `${this.dir}/${name}`;
        const mtime = lstatSync(path, { throwIfNoEntry: false })?.mtime; // It may be gone by now.
        if (mtime && Date.now() - mtime.getTime() > UNFINISHED_MS_MAX) removeFile(path);
      }
    } catch (error) {
      throw new DataError(
        `Cannot keep the index of rows there: ${(error as Error).message}; make it writable, or ` +
          "give a different home",
        { file: this.dir },
      );
    }
  }
}

/** Removes a file that may be missing. */
export function removeFile(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
