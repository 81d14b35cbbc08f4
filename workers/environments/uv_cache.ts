import { basename, dirname, join } from "node:path";
import { type Amount, removeTree } from "../../engine/mod.ts";
import { openLock } from "./environments_dir.ts";
import { type FilesOnDisk, namesIn, removeFile } from "./files_on_disk.ts";

/** Packages that uv has unpacked, each a directory: environments have links to their files. */
const PACKAGES = "archive-v0";
const PACKAGE = /[A-Za-z0-9_-]+/;
/** By a package's name: a link to its directory, and beside it a file with its origin. */
const NAMES = /^wheels-v\d+$/;
const ORIGINS = [".http", ".rev"];

/**
 * Removes packages of uv's cache that no environment but those in `gone` has a link to. uv fetches
 * them again when it needs them. Null: uv is at work, as its own lock says.
 */
export async function collectCache(
  cache: string,
  { gone, dry_run }: { gone: FilesOnDisk; dry_run: boolean },
): Promise<Amount | null> {
  const removed = { count: 0, bytes: 0 };
  const dir = join(cache, PACKAGES);
  const packages = namesIn(dir).map((name) => join(dir, name));
  if (packages.length === 0) return removed;
  using lock = await openLock(dirname(cache), join(cache, ".lock"));
  if (!await lock.tryLock(true)) return null;
  const unused = packages.filter((path) => !gone.linkedElsewhere(path));
  // First the names: uv believes that what it has a name for is there.
  if (!dry_run) await forget(cache, new Set(unused.map((path) => basename(path))));
  for (const path of unused) {
    removed.bytes += gone.add(path);
    const how = { home: cache, named: PACKAGE, owner: null, dry_run };
    removed.count += await removeTree(path, how) ? 1 : 0;
  }
  return removed;
}

async function forget(cache: string, packages: ReadonlySet<string>): Promise<void> {
  for (const bucket of namesIn(cache).filter((name) => NAMES.test(name))) {
    for (const link of linksBelow(join(cache, bucket))) {
      if (!packages.has(basename(Deno.readLinkSync(link)))) continue;
      for (const path of [...ORIGINS.map((end) => link + end), link]) await removeFile(path);
    }
  }
}

function linksBelow(dir: string): string[] {
  return [...Deno.readDirSync(dir)].flatMap(({ name, isDirectory, isSymlink }) => {
    const path = join(dir, name);
    return isDirectory ? linksBelow(path) : isSymlink ? [path] : [];
  });
}
