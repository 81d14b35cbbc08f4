/** The owner of a run's directory, written into it so that no other run or home uses it. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { isNothing, readDerivedJson } from "./derived_file.ts";
import { InvalidInputError } from "../errors.ts";
import { PRIVATE_DIRECTORY, PRIVATE_FILE } from "./private_files.ts";
import { RunId } from "../run_id.ts";

export const /** @internal */ DirectoryOwner = z.strictObject({
  home: z.string().describe("Identity of the home."),
  store: z.string().describe("Identity of the journal that the run is recorded in."),
  run: RunId,
  place: z.string().describe(
    "The resolved path of the home: distinguishes a home from its copy if both link to one " +
      "directory.",
  ),
});
export type DirectoryOwner = z.infer<typeof DirectoryOwner>;

/** Folders of a home in which each run has a directory, named by its id. */
export const RUN_FOLDERS = ["runs", "checkpoints", "logs"] as const;

/** Its name in the directory. */
export const OWNER_FILE = "owner.json";

/** Beside the owner: how far the journal of the run had got. */
export const JOURNAL_FILE = "journal.json";

/** Null if it has no readable owner. */
export function ownerOf(dir: string): DirectoryOwner | null {
  return DirectoryOwner.safeParse(readDerivedJson(join(dir, OWNER_FILE))).data ?? null;
}

/**
 * @throws {InvalidInputError} If it cannot be created: a dangling link blocks it, or writing is not
 * permitted.
 */
export function makeDirectory(dir: string): void {
  try {
    Deno.mkdirSync(dir, { recursive: true, mode: PRIVATE_DIRECTORY });
  } catch (cause) {
    const why = (cause as Error).message;
    throw new InvalidInputError(
      `Cannot make ${dir} because its path is blocked: ${why}. Fix: create a directory there ` +
        "that you can write to",
      { dir },
      { cause },
    );
  }
}

/** Makes the directory if it is missing. A reader sees a complete owner or none. */
export function writeOwner(dir: string, owner: DirectoryOwner): void {
  makeDirectory(dir);
  const path = join(dir, OWNER_FILE);
  const fresh = `${path}.${crypto.randomUUID()}`;
  {
    using file = Deno.openSync(fresh, { write: true, createNew: true, mode: PRIVATE_FILE });
    file.writeSync(new TextEncoder().encode(`${JSON.stringify(owner)}\n`));
    file.syncSync(); // A power cut must not leave a directory that says nothing.
  }
  Deno.renameSync(fresh, path);
}

/** Whether the directory is missing or contains nothing but an owner and a mark of its journal. */
export function isUnused(dir: string): boolean {
  try {
    const isAbout = (name: string) => name.startsWith(OWNER_FILE) || name.startsWith(JOURNAL_FILE);
    return readdirSync(dir).every(isAbout);
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return true;
    throw error;
  }
}

/** Whether a first-level folder of a home is a real directory, not a link. */
export function isOwnFolder(home: string, folder: string): boolean {
  try {
    return Deno.realPathSync(join(home, folder)) === join(Deno.realPathSync(home), folder);
  } catch (error) {
    if (isNothing(error)) return true; // It will be made here.
    throw error;
  }
}

/**
 * Whether `found`, as the owner of a directory in that folder of `home`, names the same run as
 * `wanted`.
 */
export function isOwnedBy(
  found: DirectoryOwner,
  wanted: DirectoryOwner,
  at: { home: string; folder: string },
): boolean {
  if (found.store !== wanted.store || found.run !== wanted.run) return false;
  return isOwnFolder(at.home, at.folder) ||
    (found.home === wanted.home && found.place === wanted.place);
}
