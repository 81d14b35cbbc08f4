import { chmodSync, lstatSync } from "node:fs";

/**
 * What a run keeps is its owner's alone: prompts, completions and rewards are data, and so is what
 * a log quotes of them.
 */
export const PRIVATE_FILE = 0o600;
export const PRIVATE_DIRECTORY = 0o700;

/**
 * Permission of anybody else to read or write. To pass through a directory alone shows nothing:
 * somebody chose that.
 */
const OTHERS = 0o066;

/**
 * Takes files and directories that an earlier version made from everybody else. Answers those that were open.
 * One that is not there, that another user owns, or that is a link to somewhere else, is left alone.
 */
export function takeFromOthers(paths: string[]): string[] {
  return paths.filter((path) => {
    try {
      const status = lstatSync(path);
      if (status.isSymbolicLink() || (status.mode & OTHERS) === 0) return false;
      chmodSync(path, status.isDirectory() ? PRIVATE_DIRECTORY : PRIVATE_FILE);
      return true;
    } catch (error) {
      if (["ENOENT", "EPERM", "EROFS"].includes((error as { code?: string }).code ?? "")) return false;
      throw error;
    }
  });
}
