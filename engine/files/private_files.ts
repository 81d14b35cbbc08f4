import { chmodSync, lstatSync } from "node:fs";

/**
 * A run's files are private to their owner: prompts, completions and rewards are data, and so are
 * logs that quote them.
 */
export const PRIVATE_FILE = 0o600;
export const PRIVATE_DIRECTORY = 0o700;

/**
 * Permission of other users to read or write. Permission only to pass through a directory reveals
 * nothing and is kept.
 */
const OTHERS = 0o066;

/**
 * Makes files and directories private that others may read or write, as after a copy. Returns those
 * that were open. Ignores paths that are missing, that another user owns, or that are links.
 */
export function takeFromOthers(paths: string[]): string[] {
  return paths.filter((path) => {
    try {
      const status = lstatSync(path);
      if (status.isSymbolicLink() || (status.mode & OTHERS) === 0) return false;
      chmodSync(path, status.isDirectory() ? PRIVATE_DIRECTORY : PRIVATE_FILE);
      return true;
    } catch (error) {
      if (["ENOENT", "EPERM", "EROFS"].includes((error as { code?: string }).code ?? "")) {
        return false;
      }
      throw error;
    }
  });
}
