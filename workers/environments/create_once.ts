import { basename, join } from "node:path";
import {
  InfrastructureError,
  InvalidInputError,
  isNothing,
  readDerivedJson,
  removeTree,
  sha256Hex,
} from "../../engine/mod.ts";
import { makeEnvironmentsDir, openLock } from "./environments_dir.ts";
import { namesIn, removeFile } from "./files_on_disk.ts";
import type { InstalledPackages } from "./installed_packages.ts";
import { processUsing } from "../processes/process_sweep.ts";
import { unlessAborted } from "../unless_aborted.ts";
import type { PythonBuild } from "./python_interpreter.ts";
import { z } from "zod";

/** Where something is made once: a directory of the environments' directory. */
export type Place = {
  dir: string;
  name: string;
  path: string;
  /** What it is made with. */
  python: PythonBuild;
};

/** A name, the Python and the hash of the content. */
export const PLACE = /[A-Za-z0-9_][A-Za-z0-9._-]*-[0-9a-f]{12}/;
/** Ends the name of a directory that becomes a place, or whose maker was killed. */
export const UNFINISHED = /\.[0-9a-f]{8}\.making/;
/** Missing packages that an error names. */
const MISSING_SHOWN = 5;
const REMOVABLE = new RegExp(`${PLACE.source}(?:${UNFINISHED.source})?`);

/** What a place says about itself. Its time of change is when it was last asked for. */
const FACTS = "holdfast.json";
const Facts = z.strictObject({
  name: z.string(),
  python: z.strictObject({
    tag: z.string(),
    version: z.string(),
    platform: z.string(),
    base: z.string(),
  }),
  made_at: z.string(),
});
/**
 * What was found there when all was there, once. A place without it is checked at its next use, and
 * made again if something is missing.
 */
const PACKAGES = "packages.json";
const Packages = z.record(z.string(), z.string());

/** What is known of a complete place. */
export type Facts = z.infer<typeof Facts> & { used_at: Date };

/**
 * The directory of what is made from `text` with a Python: with a different text or a different
 * Python it is a different directory.
 */
export function placeOf(
  dir: string,
  { name, text, python }: { name: string; text: string; python: PythonBuild },
): Place {
  const { tag, platform, base } = python;
  const digest = sha256Hex([text, tag, platform, base].join("\n")).slice(0, 12);
  const path = join(dir, `${name}-${tag}-${digest}`);
  return { dir, name, path, python };
}

type CreateOnceOptions = {
  make: (path: string) => Promise<void>;
  /** What a place should have, and what of it is missing. */
  check: (path: string) => Promise<InstalledPackages>;
  onWait: () => void;
  /** Ends the wait for another maker. */
  signal?: AbortSignal;
};

/**
 * Makes a place on first use and returns its interpreter. A second maker waits for the first.
 *
 * It is made in a directory beside it, which gets the place's name by one rename when `check` has found all:
 * where the name is, everything is, whenever a maker was killed. So nothing in it may contain
 * the path of where it was made; `make` sees to that.
 */
export async function createOnce(place: Place, options: CreateOnceOptions): Promise<string> {
  const { dir, name, path, python } = place;
  const interpreter = join(path, "bin", "python");
  if (await isUsable(path) || await isWhole(path, options)) return interpreter;
  await makeEnvironmentsDir(dir);
  const lock = await openLock(dir, `${path}.lock`);
  try {
    if (!await lock.tryLock(true)) {
      options.onWait();
      // The system releases it if its holder dies.
      await unlessAborted(lock.lock(true), options.signal);
    }
    if (await isUsable(path) || await isWhole(path, options)) return interpreter;
    // Damaged, or without the Python that it was made with; and what a killed maker left.
    const leftovers = namesIn(dir).filter((leftover) =>
      leftover.replace(UNFINISHED, "") === basename(path)
    );
    for (const leftover of leftovers) await removePlace(dir, join(dir, leftover));
    // Another name each time: what a killed maker had started may still write to its own.
    const unfinished = `${path}.${crypto.randomUUID().slice(0, 8)}.making`;
    await options.make(unfinished);
    const { packages, missing } = await options.check(unfinished);
    if (missing.length > 0) throw incomplete(name, missing);
    await writePackages(unfinished, packages);
    const facts: z.infer<typeof Facts> = { name, python, made_at: new Date().toISOString() };
    await Deno.writeTextFile(join(unfinished, FACTS), JSON.stringify(facts) + "\n");
    await Deno.rename(unfinished, path);
    return interpreter;
  } finally {
    lock.close();
  }
}

/** Whether a place without `packages.json` (`distrust`) has everything; remembers it. */
async function isWhole(
  path: string,
  { check }: Pick<CreateOnceOptions, "check">,
): Promise<boolean> {
  if (!await exists(join(path, "bin", "python"))) return false;
  const { packages, missing } = await check(path);
  if (missing.length === 0) {
    // Where nothing may be written, it is checked each time.
    await writePackages(path, packages).catch(() => undefined);
    return true;
  }
  const pid = await processUsing(path);
  if (pid === null) return false;
  throw new InvalidInputError(
    `Cannot use the Python environment '${basename(path)}' because it is damaged and process ` +
      `${pid} uses it: it lacks ${missing.join("; ")}. Fix: stop that process; then the ` +
      "environment is created again",
    { path, pid, missing },
  );
}

function writePackages(path: string, packages: Record<string, string>): Promise<void> {
  return Deno.writeTextFile(join(path, PACKAGES), JSON.stringify(packages) + "\n");
}

function incomplete(name: string, missing: readonly string[]): InfrastructureError {
  const more = missing.length - MISSING_SHOWN;
  return new InfrastructureError(
    `Cannot create the Python environment '${name}' because the installation is incomplete: it ` +
      `lacks ${missing.slice(0, MISSING_SHOWN).join("; ")}${
        more > 0 ? `; and ${more} more` : ""
      }. ` +
      "Fix: check the disk, then run the same command again",
    { environment: name, missing: [...missing] },
    { retryable: false },
  );
}

/** The interpreter of a place that is complete already. */
export async function completePlace(
  { path }: Place,
  check: CreateOnceOptions["check"],
): Promise<string | null> {
  const interpreter = join(path, "bin", "python");
  if (await isUsable(path)) return interpreter;
  if (!await exists(interpreter)) return null;
  return (await check(path)).missing.length === 0 ? interpreter : null;
}

/** The packages that a place had when it was complete; null: it was not checked. */
export function packagesOf(path: string): Record<string, string> | null {
  return Packages.safeParse(readDerivedJson(join(path, PACKAGES))).data ?? null;
}

/** The next use of the place checks it again. */
export async function distrust(path: string): Promise<void> {
  await removeFile(join(path, PACKAGES));
}

/** Removes a place, or one in the making, for the holder of its lock. False: it was not there. */
export async function removePlace(dir: string, path: string, dry_run = false): Promise<boolean> {
  return await removeTree(path, { home: join(dir, ".."), named: REMOVABLE, owner: null, dry_run });
}

/** Of a place in any directory; null if it is not complete, or its Python is gone. */
export async function factsOf(path: string): Promise<Facts | null> {
  const file = join(path, FACTS);
  const read = Facts.safeParse(readDerivedJson(file));
  if (!read.success || !await exists(join(path, "bin", "python"))) return null;
  const { mtime } = await Deno.stat(file);
  return { ...read.data, used_at: mtime ?? new Date(0) };
}

/** Whether the place can be used; remembers that it was. */
async function isUsable(path: string): Promise<boolean> {
  // A link to a Python that is gone does not exist either.
  if (!await exists(join(path, "bin", "python")) || packagesOf(path) === null) return false;
  const now = new Date();
  // Where nothing may be written, nothing is collected either.
  await Deno.utime(join(path, FACTS), now, now).catch(() => undefined);
  return true;
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    if (isNothing(error)) return false;
    throw error;
  }
}
