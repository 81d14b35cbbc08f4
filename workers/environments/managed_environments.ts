import { basename, dirname, join } from "node:path";
import { type Amount, isNamed, removeTree, REMOVING } from "../../engine/mod.ts";
import { usedPlaces } from "./environments.ts";
import { openLock } from "./environments_dir.ts";
import { FilesOnDisk, namesIn, removeFile } from "./files_on_disk.ts";
import { installedPackages } from "./installed_packages.ts";
import {
  distrust,
  type Facts,
  factsOf,
  packagesOf,
  PLACE,
  removePlace,
  UNFINISHED,
} from "./create_once.ts";
import { processUsing } from "../processes/process_sweep.ts";
import { CACHE } from "./uv.ts";
import { collectCache } from "./uv_cache.ts";

/** A directory of the environments' directory: a complete environment, or what is left of one. */
export type ManagedEnvironment = {
  path: string;
  /** What it says about itself; null: it is being made, is damaged, or its Python is gone. */
  facts: Facts | null;
  /** Whether a lock of this release names it. */
  used: boolean;
};

/** What `dir` has, by name; nothing if there is no such directory. */
export async function managedEnvironments(dir: string): Promise<ManagedEnvironment[]> {
  const names = namesIn(dir).filter((name) => isNamed(name.replace(UNFINISHED, ""), PLACE)).sort();
  const paths = names.map((name) => join(dir, name));
  return await Promise.all(paths.filter((path) => Deno.lstatSync(path).isDirectory).map(described));
}

async function described(path: string): Promise<ManagedEnvironment> {
  const facts = UNFINISHED.test(path) ? null : await factsOf(path);
  const used = facts !== null && (await usedPlaces(dirname(path), facts.python)).includes(path);
  return { path, facts, used };
}

/**
 * What a complete environment lacks by now of what it had when it was made. One that lacks something
 * is made again at its next use.
 */
export async function missingIn({ path }: ManagedEnvironment): Promise<string[]> {
  const packages = packagesOf(path);
  if (packages === null) return []; // Its next use checks it.
  if (Object.keys(packages).length === 0) return []; // uv, which is checked by its name.
  const { missing } = await installedPackages(path, { packages });
  if (missing.length > 0) await distrust(path);
  return missing;
}

/** What was removed, or would be; and what is not used by this release and stays. */
type EnvironmentGarbage = {
  environments: Amount;
  /** What killed makers left, and environments that are damaged or whose Python is gone. */
  leftovers: Amount;
  /** Packages of uv's cache that no environment has. */
  cache: Amount;
  bytes: number;
  kept: { environment: string; why: string }[];
};

type Collecting = { dir: string; younger_than_ms: number; dry_run?: boolean; now_ms?: number };

/**
 * Removes environments that no lock of this release names and nobody uses, what killed makers left,
 * and packages of uv's cache that no environment has. Each is removed under the lock of its maker.
 * One that a process has open, or that was asked for lately, stays.
 */
export async function collectEnvironments(options: Collecting): Promise<EnvironmentGarbage> {
  const { dir, dry_run = false } = options;
  const garbage: EnvironmentGarbage = {
    environments: { count: 0, bytes: 0 },
    leftovers: { count: 0, bytes: 0 },
    cache: { count: 0, bytes: 0 },
    bytes: 0,
    kept: [],
  };
  const gone = new FilesOnDisk();
  // Any removal in the directory finishes all that were cut short.
  const moved = namesIn(dir).filter((name) => isNamed(name, REMOVING));
  for (const name of moved) garbage.leftovers.bytes += gone.add(join(dir, name));
  garbage.leftovers.count += moved.length;
  if (moved.length > 0) {
    const how = { home: join(dir, ".."), named: REMOVING, owner: null, dry_run };
    await removeTree(join(dir, moved[0]!), how);
  }
  for (const { path, used } of await managedEnvironments(dir)) {
    if (used) continue;
    const why = await underLock(path, async () => {
      const one = await described(path); // It may have been made or used meanwhile.
      const stays = one.used ? "it was created" : await whyKept(one, options);
      if (stays !== null) return stays;
      const kind = one.facts === null ? garbage.leftovers : garbage.environments;
      kind.bytes += gone.add(path);
      kind.count += await removePlace(dir, path, dry_run) ? 1 : 0;
      if (!dry_run) await removeFile(`${placeIn(path)}.log`);
      return null;
    });
    if (why !== null) garbage.kept.push({ environment: basename(path), why });
  }
  const cache = await collectCache(join(dir, CACHE), { gone, dry_run });
  if (cache === null) garbage.kept.push({ environment: CACHE, why: "uv is using it" });
  garbage.cache = cache ?? garbage.cache;
  const { environments, leftovers } = garbage;
  return { ...garbage, bytes: environments.bytes + leftovers.bytes + garbage.cache.bytes };
}

/** Why one that this release does not use stays; null: nobody else uses it. */
async function whyKept(
  { path, facts }: ManagedEnvironment,
  { younger_than_ms, now_ms = Date.now() }: Collecting,
): Promise<string | null> {
  const pid = await processUsing(path);
  if (pid !== null) return `process ${pid} uses it`;
  // Who has asked for it starts a process in it soon, or replaces one that died.
  if (facts === null || now_ms - facts.used_at.getTime() >= younger_than_ms) return null;
  return `it was used at ${facts.used_at.toISOString()}`;
}

/** Does `work` as the only maker of a place; a sentence if somebody else makes it just now. */
async function underLock(
  path: string,
  work: () => Promise<string | null>,
): Promise<string | null> {
  using lock = await openLock(dirname(path), `${placeIn(path)}.lock`);
  return await lock.tryLock(true) ? await work() : "it is being created";
}

/** The place of one that is being made. */
function placeIn(path: string): string {
  return path.replace(UNFINISHED, "");
}
