import { join, resolve } from "node:path";
import { removeTree, sha256Hex } from "../engine/mod.ts";

/** A directory under HOME/env, and the marker that it is complete. */
export type Place = { home: string; name: string; path: string; marker: string };

/** A name and the hash of its content. */
const MANAGED = /[A-Za-z0-9._-]+-[0-9a-f]{12}/;

/** The directory of what is created from `text`: a different text has a different directory. */
export function placeOf(home: string, { name, text }: { name: string; text: string }): Place {
  const path = resolve(home, "env", `${name}-${sha256Hex(text).slice(0, 12)}`);
  return { home: resolve(home), name, path, marker: `${path}.ready` };
}

/**
 * Creates a place on first use and returns its interpreter. A second creator waits for the first.
 * An incomplete place is created again: its marker is written last.
 */
export async function madeOnce(
  { home, name, path, marker }: Place,
  options: { make: () => Promise<void>; onWait: () => void },
): Promise<string> {
  const python = join(path, "bin", "python");
  const whole = async () => await exists(marker) && await exists(python);
  if (await whole()) return python;
  await Deno.mkdir(join(path, ".."), { recursive: true });
  const lock = await Deno.open(`${path}.lock`, { write: true, create: true });
  try {
    if (!await lock.tryLock(true)) {
      options.onWait();
      await lock.lock(true); // The system releases it if its holder dies.
    }
    if (await whole()) return python;
    await removeTree(path, { home, named: MANAGED, owner: null });
    await options.make();
    await Deno.writeTextFile(
      marker,
      JSON.stringify({ kind: name, made_at: new Date().toISOString() }) + "\n",
    );
    return python;
  } finally {
    lock.close();
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
