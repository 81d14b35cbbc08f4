import { basename, join } from "node:path";
import { isNothing, readDerivedJson, removeTree, sha256Hex } from "../engine/mod.ts";
import { makeEnvironmentsDir, openLock } from "./environments_dir.ts";
import { namesIn } from "./files_on_disk.ts";
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
export const MAKING = /\.[0-9a-f]{8}\.making/;
const REMOVABLE = new RegExp(`${PLACE.source}(?:${MAKING.source})?`);

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

/**
 * Makes a place on first use and returns its interpreter. A second maker waits for the first.
 *
 * It is made in a directory beside it, which gets the place's name by one rename when all is there:
 * where the name is, everything is, whenever a maker was killed. So nothing in it may contain
 * the path of where it was made; `make` sees to that.
 */
export async function madeOnce(
  place: Place,
  options: { make: (path: string) => Promise<void>; onWait: () => void },
): Promise<string> {
  const { dir, name, path, python } = place;
  const interpreter = join(path, "bin", "python");
  if (await isUsable(path)) return interpreter;
  await makeEnvironmentsDir(dir);
  const lock = await openLock(dir, `${path}.lock`);
  try {
    if (!await lock.tryLock(true)) {
      options.onWait();
      await lock.lock(true); // The system releases it if its holder dies.
    }
    if (await isUsable(path)) return interpreter;
    // Damaged, or without the Python that it was made with; and what a killed maker left.
    const lefts = namesIn(dir).filter((left) => left.replace(MAKING, "") === basename(path));
    for (const left of lefts) await removePlace(dir, join(dir, left));
    // Another name each time: what a killed maker had started may still write to its own.
    const making = `${path}.${crypto.randomUUID().slice(0, 8)}.making`;
    await options.make(making);
    const facts: z.infer<typeof Facts> = { name, python, made_at: new Date().toISOString() };
    await Deno.writeTextFile(join(making, FACTS), JSON.stringify(facts) + "\n");
    await Deno.rename(making, path);
    return interpreter;
  } finally {
    lock.close();
  }
}

/** The interpreter of a place that is complete already. */
export async function madeAlready({ path }: Place): Promise<string | null> {
  return await isUsable(path) ? join(path, "bin", "python") : null;
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
  if (!await exists(join(path, "bin", "python"))) return false;
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
